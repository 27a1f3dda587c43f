package main

import "embed"

const (
	systrap  = "pkg/sentry/platform/systrap/"
	fastPath = systrap + "metrics.go"
	attached = systrap + "subprocess_linux.go"
	features = "pkg/cpuid/static_amd64.go"
	clocks   = "pkg/sentry/kernel/timekeeper.go"
	traps    = systrap + "usertrap/usertrap_amd64.go"
	memory   = "pkg/sentry/pgalloc/pgalloc.go"
	saving   = "pkg/sentry/pgalloc/save_restore.go"
	forking  = "pkg/sentry/mm/lifecycle.go"
	reading  = "pkg/sentry/state/stateio/pagesfile.go"
	counting = "pkg/sentry/kernel/syscalls.go"
	starting = "runsc/specutils/namespace.go"
	sessions = "pkg/sentry/kernel/sessions.go"
	faults   = "pkg/sentry/mm/pma.go"
)

//go:embed *.go.txt
var texts embed.FS

// added are files that the copy has besides, and their texts. Changes below make use of
// them. One more is written by the copy itself.
var added = map[string]string{
	systrap + "ready.go":                    "filters.go.txt",
	"pkg/sentry/pgalloc/template.go":        "template_pgalloc.go.txt",
	"pkg/sentry/pgalloc/template_unsafe.go": "template_unsafe.go.txt",
	"pkg/sentry/mm/template.go":             "template_mm.go.txt",
	"pkg/sentry/kernel/template.go":         "template_kernel.go.txt",
	"runsc/fsgofer/disksize.go":             "disksize.go.txt",
}

const generatedFile = systrap + "ready_generated.go"

// change is a text that a file of gVisor has exactly once, and what it becomes.
type change struct {
	file     string // in gVisor's module
	old, new string
}

var changes = []change{
	// Systrap's threads spin for work rather than sleep once they have been busy for
	// 0.8 ms. A sandbox's programs are most often over before that is of use, while the
	// threads that spin take the processors from the programs. They begin to after 20 ms
	// of work, and again after each pause.
	{fastPath, "fastPathBackoffMin             = 2\n", "fastPathBackoffMin             = 50\n"},
	{fastPath, "\ts.curState = sentryOffStubOff\n\n\t// Drop any wakeup", `	s.curState = sentryOffStubOff
	s.stubFPBackoff = max(s.stubFPBackoff, fastPathBackoffMin)
	s.sentryFPBackoff = max(s.sentryFPBackoff, fastPathBackoffMin)

	// Drop any wakeup`},

	// The filters of system calls of the processes that programs run in are not built
	// anew at each start: see filters.go.txt.
	{attached, "func attachedThread(flags uintptr, defaultAction seccomp.Action) (*thread, error) {\n", `func attachedThread(flags uintptr, defaultAction seccomp.Action) (*thread, error) {
	instrs := readyAttached(defaultAction)
	if instrs == nil {
		var err error
		if instrs, err = attachedThreadRules(defaultAction); err != nil {
			return nil, err
		}
	}
	return forkStub(flags, instrs)
}

func attachedThreadRules(defaultAction seccomp.Action) ([]bpf.Instruction, error) {
`},
	{attached, "\tif err != nil {\n\t\treturn nil, err\n\t}\n\n\treturn forkStub(flags, instrs)\n", "\treturn instrs, err\n"},
	{systrap + "sysmsg_thread.go", "func sysmsgThreadRules(stubStart uintptr) []bpf.Instruction {\n", `func sysmsgThreadRules(stubStart uintptr) []bpf.Instruction {
	if instrs := readySysmsg(stubStart); instrs != nil {
		return instrs
	}
`},

	// A system call's instruction is replaced by a jump, which saves its signal from then
	// on, only when it has been come to some times: replacing it copies the page that it is
	// on, and takes as long as a dozen signals. Most of a short program's are come to once.
	{traps, "type State struct {\n", `type State struct {
	// seen is how often instructions that are not replaced have been come to.
	seen map[uintptr]uint8 ` + "`state:\"nosave\"`" + `

`},
	{traps, "\tpatchAddr := ac.IP() - uintptr(len(jmpInst))\n", `	patchAddr := ac.IP() - uintptr(len(jmpInst))
	if n := s.seen[patchAddr]; n < patchAfter {
		if s.seen == nil || len(s.seen) >= maxSeen {
			s.seen = make(map[uintptr]uint8)
		}
		s.seen[patchAddr] = n + 1
		return nil
	}
	delete(s.seen, patchAddr)
`},
	{traps, "// New returns the new state structure.\n", `const (
	patchAfter = 8    // times that an instruction stays as it is
	maxSeen    = 4096 // instructions that are counted; then all are forgotten
)

// New returns the new state structure.
`},

	// Programs read the time by themselves once the kernel has looked at its clocks
	// twice. It looks again after 10 ms, not after a second in which each reading is a
	// system call; after that as always.
	{clocks, `	t.updaterState.Store(updaterParked)
	if t.refs.Load() != 0 {
		t.timer.Reset(sentrytime.ApproxUpdateInterval)
`, `	t.updaterState.Store(updaterParked)
	t.updates = 0
	if t.refs.Load() != 0 {
		t.timer.Reset(t.interval())
`},
	{clocks, "\t\t\tt.timer.Reset(sentrytime.ApproxUpdateInterval)\n\t\t\tt.update(true)\n", "\t\t\tt.timer.Reset(t.interval())\n\t\t\tt.update(true)\n"},
	{clocks, "func (t *Timekeeper) update(parked bool) {\n", `func (t *Timekeeper) update(parked bool) {
	t.updates++
`},
	{clocks, "// startUpdater starts an update goroutine", `// interval is how long it takes until the next update.
//
// updateMu must be held.
func (t *Timekeeper) interval() time.Duration {
	if t.updates == 0 {
		return 10 * time.Millisecond
	}
	return sentrytime.ApproxUpdateInterval
}

// startUpdater starts an update goroutine`},
	{clocks, "type Timekeeper struct {\n", `type Timekeeper struct {
	// updates is how many there were since the updater was started. It is
	// protected by updateMu.
	updates int ` + "`state:\"nosave\"`" + `

`},

	// The processor is asked for each of 200 features by an instruction that a virtual
	// machine leaves to its host, most often for one of the same 15 answers.
	{features, "func (fs FeatureSet) ToStatic() Static {\n", `func (fs FeatureSet) ToStatic() Static {
	fs.Function = askedOnce{fs.Function, make(Static)}
`},
	{features, "// Fixed converts the FeatureSet to a fixed set.\n", `// askedOnce is a Function that keeps answers.
type askedOnce struct {
	asked Function
	known Static
}

// Query implements Function.Query.
func (a askedOnce) Query(in In) Out {
	out, ok := a.known[in]
	if !ok {
		out = a.asked.Query(in)
		a.known[in] = out
	}
	return out
}

// Fixed converts the FeatureSet to a fixed set.
`},

	// A process that has locked the memory that is to come, once it is used (MCL_FUTURE and
	// MCL_ONFAULT), gives a child copies when it forks. Otherwise both lose what is mapped,
	// and each comes by a fault of its own to every part of it that it writes to.
	{forking, "\t\tif mm.hasPinned && !pma.needCOW {\n", `		if mm.defMLockMode == memmap.MLockLazy && !pma.needCOW {
			var err error
			dstpgap, err = mm.forkCopyPMALocked(mm2, srcpseg, dstpgap, memCgID)
			if err == nil {
				continue
			}
			for pseg := mm2.pmas.FirstSegment(); pseg.Ok(); pseg = pseg.NextSegment() {
				pseg.ValuePtr().file.DecRef(pseg.fileRange())
			}
			mm2.pmas.RemoveAll()
			_, droppedIDs = mm2.removeVMAsLocked(ctx, mm2.applicationAddrRange(), droppedIDs)
			as.Release()
			return nil, err
		}

		if mm.hasPinned && !pma.needCOW {
`},

	// Memory that is freed is given back to the host only when it has not been taken again
	// within 100 ms, unless there is much of it. What is copied to it is not cleared before.
	{memory, "\thaveWaste bool\n", `	haveWaste bool

	// keptWaste is how many bytes have become waste since the releaser last
	// released. It is protected by mu.
	keptWaste uint64

	// hurry has the releaser wait no longer.
	hurry chan struct{}
`},
	{memory, "\tf.releaseCond.L = &f.mu\n", "\tf.releaseCond.L = &f.mu\n\tf.hurry = make(chan struct{}, 1)\n"},
	{memory, "\t\t\t\tunwaste.RemoveFullRange(wasteFR)\n\t\t\t\thaveWaste = true\n", `				unwaste.RemoveFullRange(wasteFR)
				haveWaste = true
				f.keptWaste += wasteFR.Length()
`},
	{memory, "\tif haveWaste && !f.haveWaste {\n", `	if haveWaste && f.keptWaste > mostWaste {
		f.releaseSoon()
	}
	if haveWaste && !f.haveWaste {
`},
	{memory, "\t\t\tif f.haveWaste {\n\t\t\t\tbreak\n\t\t\t}\n", `			if f.haveWaste {
				if f.keptWaste != 0 && f.keptWaste <= mostWaste {
					f.mu.Unlock()
					select {
					case <-f.hurry:
					case <-time.After(wasteTime):
					}
					f.mu.Lock()
				}
				f.keptWaste = 0
				break
			}
`},
	{memory, "\t\t\talloc.recycled = true\n", "\t\t\talloc.recycled = true\n\t\t\tf.keptWaste -= min(f.keptWaste, alloc.length)\n"},
	{memory, "// releaserMain implements the releaser goroutine.\n", `const (
	// wasteTime is how long waste is kept to be recycled.
	wasteTime = 100 * time.Millisecond
	// mostWaste is how much of it may be, in bytes.
	mostWaste = 16 << 20
)

// releaseSoon has waste released now.
func (f *MemoryFile) releaseSoon() {
	select {
	case f.hurry <- struct{}{}:
	default:
	}
}

// releaserMain implements the releaser goroutine.
`},
	{memory, "\t\t\tif alloc.recycled {\n\t\t\t\t// The contents", "\t\t\tif alloc.recycled && alloc.opts.ReaderFunc == nil {\n\t\t\t\t// The contents"},
	{memory, "\t\tn, err := safemem.ReadFullToBlocks(alloc.opts.ReaderFunc, dsts)\n", `		n, err := safemem.ReadFullToBlocks(alloc.opts.ReaderFunc, dsts)
		if alloc.recycled && n < length {
			_, _ = safemem.ZeroSeq(dsts.DropFirst64(n)) // what is not read is freed, but for the rest of a page
		}
`},
	{saving, "\tfor f.haveWaste {\n", "\tfor f.haveWaste {\n\t\tf.releaseSoon()\n"},
	// A process that starts one sandbox after the other (runsc/launch.go) starts each in its
	// control group, by a thread that enters it and does not come back.
	{starting, "// StartInNS joins or creates", `// StartCommand starts processes, if it is not nil, each on a thread that ends afterwards.
var StartCommand func(*exec.Cmd) error

// StartInNS joins or creates`},
	{starting, "\t\tdefer runtime.UnlockOSThread()\n\n\t\trstFuncs, err", `		if StartCommand == nil {
			defer runtime.UnlockOSThread()
		}

		rstFuncs, err`},
	{starting, "\treturn deferFuncs, cmd.Start()\n", `	if StartCommand != nil {
		return deferFuncs, StartCommand(cmd)
	}
	return deferFuncs, cmd.Start()
`},

	// System calls that gVisor does not have are counted by their number, of which there are
	// 2,000: a value and a list for each, made at each start. Nobody reads them: all are counted
	// as if they were beyond the last.
	{counting, "make([]*metric.FieldValue, sentry.MaxSyscallNum+2)\n", "make([]*metric.FieldValue, 1)\n"},
	{counting, "\t\tfor i := uintptr(0); i <= sentry.MaxSyscallNum; i++ {\n\t\t\ts :=", "\t\tfor i := range uintptr(len(allowedValues) - 1) {\n\t\t\ts :="},

	// Each that reads a checkpoint is a thread, and a processor of Go's with 16 KiB and
	// more for as long as the kernel lives: 128 of them take 4 MB of a restored kernel.
	{reading, "\tpagesFileFDDefaultMaxParallel = 128\n", "\tpagesFileFDDefaultMaxParallel = 4\n"},

	// Whoever leaves a process group makes an orphan of it only if that has been its last
	// tie to the session. gVisor hangs up on the stopped processes of a group that has been
	// an orphan all along, as that of each session's leader is, at each member's end.
	{sessions, "\t\tpg.ancestors--\n\t}\n", "\t\tpg.ancestors--\n\t\tuntied = pg.ancestors == 0\n\t}\n"},
	{sessions, "func (pg *ProcessGroup) decRefWithParent(parentPG *ProcessGroup) {\n", "func (pg *ProcessGroup) decRefWithParent(parentPG *ProcessGroup) {\n\tuntied := false\n"},
	{sessions, "\tif alive {\n\t\tpg.handleOrphan()\n", "\tif alive && untied {\n\t\tpg.handleOrphan()\n"},

	// Kernels that are restored from one checkpoint in the background share its pages until
	// they write them: see template_pgalloc.go.txt and template_mm.go.txt. Only what is no program's
	// private memory is read, once it is known.
	{memory, "\tasyncPageLoad atomic.Pointer[asyncMemoryFileLoad]\n", "\tasyncPageLoad atomic.Pointer[asyncMemoryFileLoad]\n\n\t// holdLoads is what HoldLoads has asked for.\n\tholdLoads bool\n"},
	{saving, "\tminUnloaded atomicbitops.Uint64\n", "\tminUnloaded atomicbitops.Uint64\n\n\t// held is true until ReleaseLoads. It is protected by pf.mu.\n\theld bool\n"},
	{saving, "\tbytesLoaded uint64\n", "\tbytesLoaded uint64\n\n\t// held is how many of amfls are held, and filesDone is true after MemoryFilesDone.\n\t// Both are protected by mu.\n\theld      int\n\tfilesDone bool\n"},
	{saving, "\t\tamfl.pf.amfls.PushBack(amfl)\n", "\t\tamfl.pf.amfls.PushBack(amfl)\n\t\tif f.holdLoads {\n\t\t\tamfl.pf.mu.Lock()\n\t\t\tamfl.held = true\n\t\t\tamfl.pf.held++\n\t\t\tamfl.pf.mu.Unlock()\n\t\t}\n"},
	{saving, "\t\t\tif amfl.unloaded.IsEmpty() {\n\t\t\t\t// The async", "\t\t\tif amfl.unloaded.IsEmpty() && !amfl.held {\n\t\t\t\t// The async"},
	{saving, "\t\t\t\tulseg := amfl.unloaded.LowerBoundSegment(amfl.minUnstarted)\n\t\t\t\tfor ulseg.Ok() {\n", "\t\t\t\tulseg := amfl.unloaded.LowerBoundSegment(amfl.minUnstarted)\n\t\t\t\tfor ulseg.Ok() && !amfl.held {\n"},
	{saving, "\t\t\t\tapfl.priority.PushBack(aplFileRange{amfl, ulFR})\n", "\t\t\t\tapfl.priority.PushBack(aplFileRange{amfl, ulFR})\n\t\t\t\tapfl.lfStatus.Notify(aplLFPending) // it may be out of work while others are held\n"},
	{saving, "\t\t\tif amfl.lfDone {\n", "\t\t\tif amfl.lfDone && !amfl.held {\n"},
	{saving, "\tapfl.lfStatus.Notify(aplLFDone)\n", `	apfl.mu.Lock()
	apfl.filesDone = true
	held := apfl.held
	apfl.mu.Unlock()
	if held == 0 {
		apfl.lfStatus.Notify(aplLFDone)
	}
`},
	{faults, "\tif !pma.private {\n\t\treturn true\n\t}\n", "\tif !pma.private || pma.isTemplate() {\n\t\treturn true\n\t}\n"},
	{forking, "\t\t// srcpseg.ValuePtr().file == mm.mf since pma.private == true.\n\t\tmm.mf.IncRef(fr, memCgID)\n", "\t\tpma.file.IncRef(fr, memCgID)\n"},
	{"pkg/sentry/mm/save_restore.go", "func (mm *MemoryManager) InvalidateUnsavable(ctx context.Context) error {\n", "func (mm *MemoryManager) InvalidateUnsavable(ctx context.Context) error {\n\tif err := mm.leaveTemplate(ctx); err != nil {\n\t\treturn err\n\t}\n"},
	{"runsc/boot/controller.go", "\tstateFile, pagesMetadata, pagesFile, err := getRestoreReaders(o)\n", `	var template *pgalloc.Template
	if o.Background && o.HavePagesFile && !o.UseCheckpointGofer && len(o.Files) > 2 {
		var err error
		if template, err = pgalloc.NewTemplate(int(o.Files[2].Fd())); err != nil {
			return err
		}
	}
	stateFile, pagesMetadata, pagesFile, err := getRestoreReaders(o)
`},
	{"runsc/boot/controller.go", "\t\"gvisor.dev/gvisor/pkg/sentry/kernel\"\n", "\t\"gvisor.dev/gvisor/pkg/sentry/kernel\"\n\t\"gvisor.dev/gvisor/pkg/sentry/pgalloc\"\n"},
	{"runsc/boot/controller.go", "\t\tbackground: o.Background,\n", "\t\tbackground: o.Background,\n\t\ttemplate:   template,\n"},
	{"runsc/boot/controller.go", "\ttimer.Reached(\"created MemoryFile\")\n\n\tif o.HavePagesFile {\n", "\ttimer.Reached(\"created MemoryFile\")\n\n\tif template != nil {\n\t\tcm.restorer.mainMF.HoldLoads()\n\t}\n\tif o.HavePagesFile {\n"},
	{"runsc/boot/restore.go", "\tbackground bool\n", "\tbackground bool\n\n\t// template is what programs share their memory with, or nil.\n\ttemplate *pgalloc.Template\n"},
	{"runsc/boot/restore.go", "\tr.timer.Reached(\"kernel loaded\")\n\tif oldN", `	r.timer.Reached("kernel loaded")
	if r.template != nil {
		if err := l.k.UseTemplate(r.template); err != nil {
			return fmt.Errorf("failed to share memory: %w", err)
		}
		r.timer.Reached("memory shared")
	}
	if oldN`},
}
