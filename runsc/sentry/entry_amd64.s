#include "textflag.h"

#define SYS_capget 125
#define SYS_capset 126
#define SYS_prctl  157

#define PR_CAPBSET_DROP 24
#define CAPABILITY_VERSION_3 0x20080522
#define CAP_SETPCAP 8

// entry is where the process begins, before Go's runtime and its threads: see
// entry.go. Of the registers only SP means something here.
TEXT ·entry(SB), NOSPLIT|NOFRAME, $0
	MOVL	$0, R12
drop:
	MOVL	$PR_CAPBSET_DROP, DI
	MOVL	R12, SI
	XORL	DX, DX
	XORL	R10, R10
	XORL	R8, R8
	MOVL	$SYS_prctl, AX
	SYSCALL
	TESTQ	AX, AX
	JNE	dropped // there is no such capability, or no right to drop any
	INCL	R12
	JMP	drop
dropped:
	TESTL	R12, R12
	JEQ	start

	// Two words of header and, twice, three of sets: effective, permitted, inheritable.
	MOVQ	SP, R13
	SUBQ	$32, SP
	MOVL	$CAPABILITY_VERSION_3, 0(SP)
	MOVL	$0, 4(SP)
	LEAQ	0(SP), DI
	LEAQ	8(SP), SI
	MOVL	$SYS_capget, AX
	SYSCALL
	TESTQ	AX, AX
	JNE	restore
	ANDL	$~(1<<CAP_SETPCAP), 8(SP)
	LEAQ	0(SP), DI
	LEAQ	8(SP), SI
	MOVL	$SYS_capset, AX
	SYSCALL
restore:
	MOVQ	R13, SP
start:
	JMP	_rt0_amd64_linux(SB)
