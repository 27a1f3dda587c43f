#include "textflag.h"

#define SYS_read       0
#define SYS_capget     125
#define SYS_capset     126
#define SYS_prctl      157
#define SYS_umount2    166
#define SYS_exit_group 231

#define PR_CAPBSET_DROP 24
#define CAPABILITY_VERSION_3 0x20080522
#define CAP_SETPCAP 8
#define CAP_SYS_ADMIN 21
#define EINTR 4
#define MNT_DETACH 2

// Two words of header and, twice, three of sets. R13 has SP meanwhile.
#define header      0(SP)
#define sets        8(SP)
#define effective   8(SP)
#define permitted   12(SP)
#define inheritable 16(SP)
#define room        $32

#define CAPSET \
	LEAQ	header, DI \
	LEAQ	sets, SI \
	MOVL	$SYS_capset, AX \
	SYSCALL

// entry is where the process begins, before Go's runtime and its threads: see
// entry.go. Of the registers only SP means something here.
TEXT ·entry(SB), NOSPLIT|NOFRAME, $0
	// The umount command of this program is all that follows its name, as the kernel
	// lays it out: "umount", "--sync-fd=3", "/proc".
	CMPQ	0(SP), $4
	JNE	kernel
	MOVQ	16(SP), SI
	MOVQ	$0x2d00746e756f6d75, AX
	CMPQ	AX, 0(SI)
	JNE	kernel
	MOVQ	$0x64662d636e79732d, AX
	CMPQ	AX, 8(SI)
	JNE	kernel
	MOVQ	$0x636f72702f00333d, AX
	CMPQ	AX, 16(SI)
	JNE	kernel
	CMPB	24(SI), $0
	JNE	kernel
wait:
	MOVL	$3, DI
	LEAQ	-8(SP), SI
	MOVL	$1, DX
	MOVL	$SYS_read, AX
	SYSCALL
	CMPQ	AX, $-EINTR
	JEQ	wait
	MOVL	$1, DI
	CMPQ	AX, $1
	JNE	exit // who wanted it has ended
	MOVQ	32(SP), DI
	MOVL	$MNT_DETACH, SI
	MOVL	$SYS_umount2, AX
	SYSCALL
	XORL	DI, DI
	TESTQ	AX, AX
	JEQ	exit
	MOVL	$1, DI
exit:
	MOVL	$SYS_exit_group, AX
	SYSCALL
	JMP	exit

kernel:
	MOVQ	SP, R13
	SUBQ	room, SP
	MOVL	$CAPABILITY_VERSION_3, header
	MOVL	$0, 4(SP)
	LEAQ	header, DI
	LEAQ	sets, SI
	MOVL	$SYS_capget, AX
	SYSCALL
	TESTQ	AX, AX
	JNE	start

	// The process that unmounts /proc needs it. Where it runs as root, it has what
	// is inheritable and what is in the bounding set.
	MOVL	permitted, AX
	ANDL	$(1<<CAP_SYS_ADMIN), AX
	ORL	AX, inheritable
	CAPSET
	TESTQ	AX, AX
	JNE	start

	MOVL	$0, R12
drop:
	MOVL	$PR_CAPBSET_DROP, DI
	MOVL	R12, SI
	XORL	DX, DX
	XORL	R10, R10
	XORL	R8, R8
	MOVL	$SYS_prctl, AX
	SYSCALL
	INCL	R12
	TESTQ	AX, AX
	JEQ	drop
	CMPL	R12, $1
	JEQ	start // no right to; otherwise there is no further one

	ANDL	$~(1<<CAP_SETPCAP), effective
	CAPSET
start:
	MOVQ	R13, SP
	JMP	_rt0_amd64_linux(SB)
