#include "textflag.h"

// A system call as "mov $n, %eax; syscall" is what systrap replaces, when it first
// comes, by a jump that needs no signal. So each number has such a place of its own.
#define C(n) BYTE $0xb8; LONG $(n); BYTE $0x0f; BYTE $0x05; BYTE $0xc3 // ...; ret
#define C8(n) C(n); C(n+1); C(n+2); C(n+3); C(n+4); C(n+5); C(n+6); C(n+7)
#define C64(n) C8(n); C8(n+8); C8(n+16); C8(n+24); C8(n+32); C8(n+40); C8(n+48); C8(n+56)

TEXT calls<>(SB), NOSPLIT|NOFRAME, $0-0
	C64(0)
	C64(64)
	C64(128)
	C64(192)
	C64(256)
	C64(320)
	C64(384)

// func syscall6(trap, a1, a2, a3, a4, a5, a6 uintptr) (r1 uintptr, err unix.Errno)
TEXT ·syscall6(SB), NOSPLIT, $0-72
	MOVQ	a1+8(FP), DI
	MOVQ	a2+16(FP), SI
	MOVQ	a3+24(FP), DX
	MOVQ	a4+32(FP), R10
	MOVQ	a5+40(FP), R8
	MOVQ	a6+48(FP), R9
	MOVQ	trap+0(FP), AX
	CMPQ	AX, $448
	JAE	other
	LEAQ	calls<>(SB), CX
	LEAQ	(CX)(AX*8), CX
	CALL	CX
	JMP	done
other:
	SYSCALL
done:
	CMPQ	AX, $0xfffffffffffff001
	JLS	ok
	NEGQ	AX
	MOVQ	$-1, r1+56(FP)
	MOVQ	AX, err+64(FP)
	RET
ok:
	MOVQ	AX, r1+56(FP)
	MOVQ	$0, err+64(FP)
	RET

// func begin(args, size, steps, status uintptr) (pid uintptr, err unix.Errno)
TEXT ·begin(SB), NOSPLIT, $0-48
	MOVQ	args+0(FP), DI
	MOVQ	size+8(FP), SI
	MOVQ	steps+16(FP), R12
	MOVQ	status+24(FP), R13
	BYTE	$0xb8; LONG $435; BYTE $0x0f; BYTE $0x05 // clone3
	TESTQ	AX, AX
	JEQ	step
	CMPQ	AX, $0xfffffffffffff001
	JLS	began
	NEGQ	AX
	MOVQ	$-1, pid+32(FP)
	MOVQ	AX, err+40(FP)
	RET
began:
	MOVQ	AX, pid+32(FP)
	MOVQ	$0, err+40(FP)
	RET

// The child has a stack of its own, and nothing else of what Go needs.
step:
	MOVQ	0(R12), AX
	TESTQ	AX, AX
	JLT	back
	MOVQ	8(R12), DI
	MOVQ	16(R12), SI
	MOVQ	24(R12), DX
	MOVQ	32(R12), R10
	MOVQ	40(R12), R8
	MOVQ	48(R12), R9
	LEAQ	calls<>(SB), CX
	LEAQ	(CX)(AX*8), CX
	CALL	CX
	CMPQ	AX, $0xfffffffffffff001
	JHI	failed
	ADDQ	$56, R12
	JMP	step
back:
	SUBQ	$56, R12
	JMP	step
failed:
	CMPQ	56(R12), $0
	JLT	again // the last one may fail
	NEGQ	AX
	MOVQ	AX, 0(R13)
	MOVQ	R12, 8(R13)
	MOVL	$1, DI
	BYTE	$0xb8; LONG $231; BYTE $0x0f; BYTE $0x05 // exit_group
again:
	ADDQ	$56, R12
	JMP	step
