#include "textflag.h"

#define SYS_capget 125
#define SYS_capset 126
#define SYS_prctl  157

#define PR_CAPBSET_DROP 24
#define CAPABILITY_VERSION_3 0x20080522
#define CAP_SETPCAP 8
#define CAP_SYS_ADMIN 21

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
