package filetool

import (
	"strings"
)

// The lines that a patch is made of, as coding agents write them.
const (
	beginPatch = "*** Begin Patch"
	endPatch   = "*** End Patch"
	addFile    = "*** Add File: "
	deleteFile = "*** Delete File: "
	updateFile = "*** Update File: "
	moveTo     = "*** Move to: "
	endOfFile  = "*** End of File"
)

// patchParser reads a patch line by line.
type patchParser struct {
	lines []string
	at    int // of the next line
}

func (p *patchParser) wrong(format string, args ...any) error {
	return refuse("line %d of the patch: "+format, append([]any{p.at + 1}, args...)...)
}

// next returns the next line; ok is false at the end of the patch.
func (p *patchParser) next() (line string, ok bool) {
	if p.at >= len(p.lines) {
		return "", false
	}
	return p.lines[p.at], true
}

// parsePatch reads a patch.
func parsePatch(text string) ([]change, error) {
	p := &patchParser{lines: strings.Split(strings.TrimSpace(strings.ReplaceAll(text, "\r\n", "\n")), "\n")}
	last := len(p.lines) - 1
	if strings.TrimSpace(p.lines[0]) != beginPatch || strings.TrimSpace(p.lines[last]) != endPatch || last == 0 {
		return nil, refuse("a patch begins with the line %q and ends with the line %q", beginPatch, endPatch)
	}
	p.lines, p.at = p.lines[:last], 1
	var changes []change
	named := map[string]bool{}
	for {
		line, ok := p.next()
		if !ok {
			break
		}
		if strings.TrimSpace(line) == "" {
			p.at++
			continue
		}
		d, err := p.file(line)
		if err != nil {
			return nil, err
		}
		for _, path := range []string{d.path, d.to} {
			if path != "" && named[path] {
				return nil, refuse("the patch names %s twice; put all of its changes under one header", path)
			}
			named[path] = true
		}
		if changes = append(changes, *d); len(changes) > maxPatched {
			return nil, refuse("a patch may change at most %d files", maxPatched)
		}
	}
	if len(changes) == 0 {
		return nil, refuse("the patch changes nothing")
	}
	return changes, nil
}

// file reads the part of a patch that begins with the header of a file.
func (p *patchParser) file(header string) (*change, error) {
	for prefix, verb := range map[string]byte{addFile: 'A', deleteFile: 'D', updateFile: 'M'} {
		path, ok := strings.CutPrefix(header, prefix)
		if !ok {
			continue
		}
		d := &change{verb: verb, path: clean(path)}
		if strings.TrimSpace(path) == "" {
			return nil, p.wrong("the header names no file")
		}
		p.at++
		switch verb {
		case 'A':
			return d, p.added(d)
		case 'M':
			return d, p.updated(d)
		}
		return d, nil
	}
	return nil, p.wrong("%q is no header; there are %q, %q and %q", clip(header, 100), addFile+"…", updateFile+"…", deleteFile+"…")
}

// header reports whether a line begins the next file.
func header(line string) bool {
	return strings.HasPrefix(line, addFile) || strings.HasPrefix(line, deleteFile) || strings.HasPrefix(line, updateFile)
}

func (p *patchParser) added(d *change) error {
	for {
		line, ok := p.next()
		if !ok || header(line) {
			return nil
		}
		text, ok := strings.CutPrefix(line, "+")
		if !ok {
			if strings.TrimSpace(line) == "" && p.blankUntilHeader() {
				return nil
			}
			return p.wrong("each line of a new file begins with +")
		}
		d.add = append(d.add, text)
		p.at++
	}
}

// blankUntilHeader skips blank lines at the end of a file's part.
func (p *patchParser) blankUntilHeader() bool {
	at := p.at
	for ; at < len(p.lines) && strings.TrimSpace(p.lines[at]) == ""; at++ {
	}
	if at == len(p.lines) || header(p.lines[at]) {
		p.at = at
		return true
	}
	return false
}

func (p *patchParser) updated(d *change) error {
	if line, ok := p.next(); ok && strings.HasPrefix(line, moveTo) {
		d.to = clean(strings.TrimPrefix(line, moveTo))
		p.at++
	}
	for {
		line, ok := p.next()
		if !ok || header(line) {
			break
		}
		if strings.TrimSpace(line) == "" && p.blankUntilHeader() {
			break
		}
		k, err := p.chunk(len(d.chunks) == 0)
		if err != nil {
			return err
		}
		d.chunks = append(d.chunks, *k)
	}
	if len(d.chunks) == 0 && d.to == "" {
		return p.wrong("there is no change of %s", d.path)
	}
	return nil
}

// chunk reads one. Only the first of a file may begin without @@.
func (p *patchParser) chunk(first bool) (*chunk, error) {
	k := &chunk{line: p.at + 1}
	for {
		line, ok := p.next()
		if !ok || !strings.HasPrefix(line, "@@") {
			break
		}
		if context := strings.TrimPrefix(strings.TrimPrefix(line, "@@"), " "); strings.TrimSpace(context) != "" {
			k.after = append(k.after, context)
		}
		first = true
		p.at++
	}
	if !first {
		return nil, p.wrong("a change begins with @@")
	}
	began := p.at
	for {
		line, ok := p.next()
		if !ok || header(line) || strings.HasPrefix(line, "@@") {
			break
		}
		if strings.TrimSpace(line) == endOfFile {
			k.atEnd = true
			p.at++
			break
		}
		if line == "" && p.blankUntilHeader() {
			break
		}
		text := ""
		if line != "" {
			text = line[1:]
		}
		switch {
		case line == "" || line[0] == ' ':
			k.old, k.new = append(k.old, text), append(k.new, text)
		case line[0] == '-':
			k.old = append(k.old, text)
		case line[0] == '+':
			k.new = append(k.new, text)
		default:
			return nil, p.wrong("%q begins with neither a space, + nor -", clip(line, 100))
		}
		p.at++
	}
	if p.at == began {
		return nil, p.wrong("there is no line after @@")
	}
	return k, nil
}
