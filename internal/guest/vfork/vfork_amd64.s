#include "textflag.h"

// The child runs on its parent's stack, to which it writes nothing.
TEXT ·vfork(SB), NOSPLIT|NOFRAME, $0-48
	MOVQ	args+0(FP), DI
	MOVQ	size+8(FP), SI
	MOVQ	calls+16(FP), R12
	MOVQ	count+24(FP), R13
	MOVQ	failed+32(FP), R14
	MOVL	$435, R8 // clone3
	MOVQ	R8, AX
	SYSCALL
	TESTQ	AX, AX
	JEQ	next
	MOVQ	AX, ret+40(FP)
	RET
next:
	MOVQ	0(R12), AX
	MOVQ	8(R12), DI
	MOVQ	16(R12), SI
	MOVQ	24(R12), DX
	MOVQ	32(R12), R10
	MOVQ	40(R12), R8
	MOVQ	48(R12), R9
	SYSCALL
	CMPQ	AX, $-4095
	JCC	broken
	ADDQ	$56, R12
	SUBQ	$1, R13
	JMP	next // the last call does not return
broken:
	MOVQ	AX, 0(R14)
	MOVQ	R13, 8(R14)
	MOVL	$253, DI
	MOVL	$231, AX // exit_group
	SYSCALL
	INT	$3
