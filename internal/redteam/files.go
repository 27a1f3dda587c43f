package redteam

import (
	"context"
	"fmt"
	"net/http"
	"strings"
)

// fileCases take files to be elsewhere than they say they are.
func fileCases() []Case {
	return []Case{
		{"files/thread-names", Critical, "reads, writes and deletes files of a thread by names that climb out, encoded in each way", "each is refused, and other threads are as they were", threadNames},
		{"files/thread-links", Critical, "has a program leave links to files of the host in a thread, and reads and writes through them from outside", "no link is followed out of the thread", threadLinks},
		{"files/request-names", Critical, "gives an execution files with names that climb out, and asks for outputs that are elsewhere", "each is refused, or is of the working folder", requestNames},
		{"files/output-links", Critical, "has a program make outputs that are links to files of its system and of the host", "what is given back is what the program itself could read", outputLinks},
		{"files/sandbox-host", Critical, "reads and writes paths of the host through a named sandbox's files", "they are the sandbox's own, or refused", sandboxHost},
	}
}

func threadNames(ctx context.Context, a *arena) error {
	near, err := a.theNear(ctx)
	if err != nil {
		return err
	}
	const at = "/v1/threads/redteam-names"
	if err := a.plain.must(ctx, http.MethodPut, at+"/files/own.txt", []byte("own"), nil); err != nil {
		return err
	}
	for _, name := range []string{
		"..%2f" + nearThread + "%2fown.txt", "%2e%2e/" + nearThread + "/own.txt", "..%2f..%2f..%2f..%2f..%2fetc%2fpasswd", "%2fetc%2fpasswd", "a%2f..%2f..%2f" + nearThread + "%2fown.txt",
		"..%5c" + nearThread + "%5cown.txt", "own.txt%00.png", "%c0%ae%c0%ae%2fown.txt", "..", ".", "%2e%2e", strings.Repeat("a%2f", 3000) + "b",
	} {
		for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodDelete} {
			var body any
			if method == http.MethodPut {
				body = []byte(payload)
			}
			got, err := a.plain.do(ctx, method, at+"/files/"+name, body)
			if err != nil {
				return err
			}
			if got.Status >= 500 || strings.Contains(string(got.Body), "root:") || string(got.Body) == "near" {
				return found("%s of the file %.100s: %s", method, name, got)
			}
		}
	}
	own, err := a.plain.do(ctx, http.MethodGet, near, nil)
	if err != nil {
		return err
	}
	if string(own.Body) != "near" {
		return found("the file of another thread is now %s", own)
	}
	return gone(ctx, a.plain, at)
}

// hostWords are what files of a host have and those of this case's thread do not.
var hostWords = []string{"root:", "HOST_SECRET", "PATH=", "Linux version"}

func threadLinks(ctx context.Context, a *arena) error {
	near, err := a.theNear(ctx)
	if err != nil {
		return err
	}
	const thread = "redteam-links"
	e, err := a.execute(ctx, a.plain, "bash", "ln -s /etc/passwd passwd; ln -s /proc/self/environ environ; ln -s /proc/version version; ln -s / root; ln -s .. up; ln -s ../"+nearThread+" near; ln -s passwd twice; ln -s self self; echo planted",
		20, map[string]any{"thread_id": thread})
	if err != nil {
		return err
	}
	if !strings.Contains(e.Stdout, "planted\n") {
		return fmt.Errorf("the planting program: %s", e)
	}
	at := "/v1/threads/" + thread + "/files/"
	for _, name := range []string{"passwd", "twice", "environ", "version", "root/etc/passwd", "root/proc/self/environ", "up/etc/passwd", "near/own.txt", "self", "root/tmp/redteam-escape"} {
		got, err := a.plain.do(ctx, http.MethodGet, at+name, nil)
		if err != nil {
			return err
		}
		for _, word := range append(hostWords, "near") {
			if got.Status < 400 && strings.Contains(string(got.Body), word) {
				return found("the link %s is followed: %.100s", name, got)
			}
		}
		if got.Status >= 500 {
			return found("GET of the link %s: %s", name, got)
		}
		if !strings.Contains(name, "/") {
			continue // writing there replaces the link, as it should
		}
		if got, err = a.plain.do(ctx, http.MethodPut, at+name, []byte(payload)); err != nil {
			return err
		}
		if got.Status < 400 || got.Status >= 500 {
			return found("a file was written through the link %s: %s", name, got)
		}
	}
	own, err := a.plain.do(ctx, http.MethodGet, near, nil)
	if err != nil {
		return err
	}
	if string(own.Body) != "near" {
		return found("the file of another thread is now %s", own)
	}
	return gone(ctx, a.plain, "/v1/threads/"+thread)
}

func requestNames(ctx context.Context, a *arena) error {
	for _, name := range []string{"../redteam-escape", "/tmp/redteam-escape", "a/../../redteam-escape", "", ".", "..", "a\x00b", "~/redteam-escape/../../x"} {
		e, err := a.execute(ctx, a.plain, "bash", "ls -d /tmp/redteam-escape /redteam-escape /home/redteam-escape ../redteam-escape 2>/dev/null", 20, map[string]any{"files": map[string]string{name: payload}})
		if err != nil {
			return err
		}
		if e.Status >= 500 || strings.Contains(e.Stdout, "redteam-escape") {
			return found("a file of the name %q: %s", name, e)
		}
	}
	for _, name := range []string{"../../etc/passwd", "/etc/passwd", "a/../../../etc/passwd", "/proc/1/environ"} {
		e, err := a.execute(ctx, a.plain, "bash", "true", 20, map[string]any{"outputs": []string{name}})
		if err != nil {
			return err
		}
		if e.Status < 400 || e.Status >= 500 {
			return found("the output %q: %s", name, e)
		}
	}
	return nil
}

func outputLinks(ctx context.Context, a *arena) error {
	names := []string{"passwd", "environ", "dir", "hard", "pipe"}
	e, err := a.execute(ctx, a.plain, "bash", "ln -s /etc/passwd passwd; ln -s /proc/1/environ environ; ln -s /etc dir; ln /etc/passwd hard 2>/dev/null; mkfifo pipe; cat /etc/passwd", 20, map[string]any{"outputs": names})
	if err != nil {
		return err
	}
	if e.Status != http.StatusOK {
		return fmt.Errorf("the program: %s", e)
	}
	for _, name := range append(names, "dir/passwd", "dir/shadow", "..%2f..%2fetc%2fpasswd", "%2fetc%2fpasswd") {
		got, err := a.plain.do(ctx, http.MethodGet, "/v1/executions/"+e.Trace+"/file?path="+name, nil)
		if err != nil {
			return err
		}
		// A link to what the program itself can read shows nothing that it could not print.
		if got.Status >= 500 || got.Status < 400 && (len(got.Body) == 0 || string(got.Body) != e.Stdout) {
			return found("the output %s: %.100s", name, got)
		}
	}
	return nil
}

func sandboxHost(ctx context.Context, a *arena) error {
	s, err := a.theBox(ctx)
	if err != nil {
		return err
	}
	for _, path := range []string{
		"/proc/1/environ", "/proc/1/root/etc/shadow", "/etc/shadow", "/home/user/../../proc/1/mem", "/../../../../etc/shadow", "/proc/self/environ", "/root/.ssh/id_rsa", "/var/lib/atoll/admin-key", "/.atoll/../proc/1/environ",
	} {
		got, err := s.by.do(ctx, http.MethodGet, s.path("/files", "path", path), nil)
		if err != nil {
			return err
		}
		text := string(got.Body)
		if got.Status >= 500 || strings.Contains(text, "HOST_SECRET") || strings.Contains(text, "sk-atoll-") || strings.Contains(text, "root:$") || strings.Contains(text, "ATOLL_LISTEN") {
			return found("GET %s: %.200s", path, got)
		}
	}
	for _, path := range []string{"/etc/redteam-escape", "/usr/bin/redteam-escape", "/proc/sys/kernel/core_pattern", "/.atoll/redteam-escape", "/home/user/../../etc/redteam-escape", "relative/redteam-escape\x00"} {
		got, err := s.by.do(ctx, http.MethodPut, s.path("/files", "path", path), []byte(payload))
		if err != nil {
			return err
		}
		if got.Status < 400 || got.Status >= 500 {
			return found("PUT %q: %s", path, got)
		}
	}
	return nil
}
