// Command bench measures Atoll against the baselines it promises to beat, all in
// one run on one machine: 'make bench'. docs/operate/benchmarks.md describes the groups
// of cases and how to read the results.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/atoll-run/atoll/bench/report"
	"github.com/atoll-run/atoll/bench/rig"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}

// Exit codes: a figure that misses its target is no error unless -strict.
const (
	exitOK     = 0
	exitFailed = 1 // something could not be measured, or went wrong while it was
	exitUsage  = 2
	exitMissed = 3 // with -strict
)

type options struct {
	quick, strict, profile bool
	images, image, out     string
	groups, parts          []string
}

func parse(args []string) (*options, error) {
	o := &options{groups: groupNames()}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	data := os.Getenv("ATOLL_DATA_DIR")
	if data == "" {
		data = "data"
	}
	flags.BoolVar(&o.quick, "quick", false, "take a tenth of the samples, for trying out")
	flags.BoolVar(&o.strict, "strict", false, "exit with 3 when a figure misses what it must reach")
	flags.BoolVar(&o.profile, "profile", false, "show instead where the time of an execution, of making a sandbox and of waking one goes")
	only := flags.String("only", "", "measure these alone, separated by commas: "+strings.Join(groupNames(), ", ")+"; or one part: "+strings.Join(partNames(), ", "))
	flags.StringVar(&o.images, "images", filepath.Join(data, "images"), "folder of images")
	flags.StringVar(&o.image, "image", "default", "image to use, one with an EROFS file")
	flags.StringVar(&o.out, "out", "", "folder for the results; a full run's go to bench/results by themselves")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if flags.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if o.out == "" && !o.quick && *only == "" {
		o.out = filepath.Join("bench", "results")
	}
	if *only != "" {
		o.groups = strings.Split(*only, ",")
	}
	for i, g := range o.groups {
		if slices.Contains(partNames(), g) {
			o.groups[i], _, _ = strings.Cut(g, "/")
			o.parts = append(o.parts, g)
			continue
		}
		if !slices.Contains(groupNames(), g) {
			return nil, fmt.Errorf("-only: there is no %q; there are %s", g, strings.Join(groupNames(), ", "))
		}
	}
	return o, nil
}

func run(ctx context.Context, args []string) int {
	o, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		return exitOK
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		return exitUsage
	}
	if _, err := os.Stat("bench/main.go"); err != nil {
		fmt.Fprintln(os.Stderr, "bench: run this from the top of the sources: go run ./bench")
		return exitUsage
	}
	rep, err := measure(ctx, o)
	if rep != nil && len(rep.Rows) > 0 {
		err = errors.Join(err, show(o, rep))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		return exitFailed
	}
	switch {
	case rep == nil:
		return exitOK
	case rep.Count(report.Failed) > 0:
		return exitFailed
	case o.strict && rep.Count(report.Missed) > 0:
		return exitMissed
	}
	return exitOK
}

func show(o *options, rep *report.Report) error {
	fmt.Println()
	if err := rep.Text(os.Stdout); err != nil {
		return err
	}
	if o.out == "" {
		return nil
	}
	path, err := rep.Write(o.out)
	if err == nil {
		fmt.Printf("\nwritten to %s\n", path)
	}
	return err
}

// busyLook is how long the machine is watched before the run, to tell whether
// others use it.
const busyLook = 2 * time.Second

// measure runs the groups asked for. The report is there even when an error
// ended them early.
func measure(ctx context.Context, o *options) (rep *report.Report, err error) {
	begun := time.Now()
	root, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	r, err := rig.New(ctx, root, o.images, o.image)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	b := &bench{rig: r, quick: o.quick, parts: o.parts}
	if o.profile {
		return nil, b.profile(ctx, os.Stdout)
	}
	if slices.ContainsFunc(groups, func(g group) bool { return g.stock && slices.Contains(o.groups, g.name) }) {
		say("building gVisor's own runsc, the baseline; the first time takes minutes")
		if err := r.BuildStock(ctx); err != nil {
			return nil, err
		}
	}
	busy, err := rig.Busy(ctx, busyLook, runtime.NumCPU())
	if err != nil {
		return nil, err
	}
	if busy > 0.1 {
		say(fmt.Sprintf("others use %.0f %% of this machine's cores; figures will be worse and less steady than they are", 100*busy))
	}
	rep = &report.Report{
		Started: begun.UTC().Truncate(time.Second), Quick: o.quick,
		Machine: report.Describe(root, r.Runsc(), r.Image.String(), busy),
	}
	before, err := rig.Stolen()
	if err != nil {
		return nil, err
	}
	for _, g := range groups {
		if !slices.Contains(o.groups, g.name) {
			continue
		}
		say(g.name + ": " + g.about)
		rows, err := g.run(ctx, b)
		if err != nil {
			rows = append(rows, report.Row{Case: g.about, Err: err.Error()})
		}
		for _, row := range rows {
			row.Group = g.name
			rep.Rows = append(rep.Rows, row.Judge())
		}
		if ctx.Err() != nil {
			break
		}
	}
	rep.Took = time.Since(begun)
	after, err := rig.Stolen()
	rep.Machine.Stolen = float64(after-before) / float64(rep.Took) / float64(runtime.NumCPU())
	return rep, errors.Join(err, ctx.Err())
}

// say reports progress.
func say(text string) {
	fmt.Fprintf(os.Stderr, "%s  %s\n", time.Now().Format(time.TimeOnly), text)
}
