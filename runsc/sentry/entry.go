package main

// entry, in assembly, is where the process begins. It empties the bounding set
// of capabilities while there is one thread, and then does without the right to
// do so. What gVisor would do later instead is to stop all threads, once for
// each of 41 capabilities, which costs 4 ms of each start; without that right it
// leaves it. The linker is told of it by -E in the Makefile. Where it is not, or
// on another architecture, gVisor does it its way.
//
// A process that is only to unmount /proc does so here and ends: starting Go for it
// takes ten times as long. Package umount does it where there is no entry.
