// Package docs runs what the documentation tells people to type: every command of
// README.md and docs/, page by page and in order, on a fresh data folder.
//
// A block marked sh is a script, and one marked console has commands behind "$ " and,
// below each, what it prints. Both run in one shell for each page, in a network, a mount
// and a process namespace: so addresses and paths are those of the page, and nothing is
// left. Pages with the directive server share an installed machine with one server, as
// systemd would run it; each other page has a machine of its own. What a console block
// prints is compared; "…" stands for anything, and ids, times and sizes may differ.
//
// HTML comments, which readers do not see, say what a page needs:
//
//	<!-- test: server -->        the page supposes a server on 127.0.0.1:8080, whose data is in
//	                             /var/lib/atoll; ATOLL_API_KEY is the development key, not exported
//	<!-- test: setup             commands that run unseen, such as making a file that the
//	COMMANDS -->                 page supposes
//	<!-- test: background -->    the next block goes on while the page does
//	<!-- test: fails -->         the next block must end with an error
//	<!-- test: terminal -->      the next block has a terminal, on which "exit" is typed
//	<!-- test: elsewhere WHY --> the next block is for a machine that no test has; WHY is
//	                             one of the reasons in elsewhere
package docs
