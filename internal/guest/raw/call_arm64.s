#include "textflag.h"

// func begin(args, size, steps, status uintptr) (pid uintptr, err unix.Errno)
TEXT ·begin(SB), NOSPLIT, $0-48
	MOVD	args+0(FP), R0
	MOVD	size+8(FP), R1
	MOVD	steps+16(FP), R19
	MOVD	status+24(FP), R20
	MOVD	$435, R8 // clone3
	SVC
	CBZ	R0, step
	CMN	$4095, R0
	BCC	began
	NEG	R0, R0
	MOVD	$-1, R1
	MOVD	R1, pid+32(FP)
	MOVD	R0, err+40(FP)
	RET
began:
	MOVD	R0, pid+32(FP)
	MOVD	ZR, err+40(FP)
	RET

// The child has a stack of its own, and nothing else of what Go needs.
step:
	MOVD	0(R19), R8
	TBNZ	$63, R8, back
	MOVD	8(R19), R0
	MOVD	16(R19), R1
	MOVD	24(R19), R2
	MOVD	32(R19), R3
	MOVD	40(R19), R4
	MOVD	48(R19), R5
	SVC
	CMN	$4095, R0
	BCS	failed
	ADD	$56, R19
	B	step
back:
	SUB	$56, R19
	B	step
failed:
	MOVD	56(R19), R6
	TBNZ	$63, R6, again // the last one may fail
	NEG	R0, R0
	MOVD	R0, 0(R20)
	MOVD	R19, 8(R20)
	MOVD	$1, R0
	MOVD	$94, R8 // exit_group
	SVC
again:
	ADD	$56, R19
	B	step
