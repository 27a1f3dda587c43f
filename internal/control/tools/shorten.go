package tools

// Shorten cuts each text of an output to at most most bytes. It returns the output and reports
// whether it cut a text, which the output marks as truncated. It does not modify out, and
// returns outputs without such texts unchanged.
func Shorten(out any, most int) (_ any, shorter bool) {
	switch o := out.(type) {
	case *ShellOutput:
		cut := *o
		shorter = shorten(&cut.Stdout, &cut.StdoutTruncated, most)
		shorter = shorten(&cut.Stderr, &cut.StderrTruncated, most) || shorter
		return &cut, shorter
	case *ExecuteOutput:
		cut := *o
		shorter = shorten(&cut.Stdout, &cut.StdoutTruncated, most)
		shorter = shorten(&cut.Stderr, &cut.StderrTruncated, most) || shorter
		return &cut, shorter
	case *CodeOutput:
		cut := *o
		shorter = shorten(&cut.Stdout, &cut.StdoutTruncated, most)
		shorter = shorten(&cut.Stderr, &cut.StderrTruncated, most) || shorter
		return &cut, shorter
	case *ReadFileOutput:
		cut := *o
		if o.Encoding == inBase64 {
			most -= most % 4 // of which every 3 bytes are made
		}
		return &cut, shorten(&cut.Content, &cut.Truncated, most)
	case *GlobOutput:
		cut := *o
		shorter = fewer(&cut.Files, most)
		shorter = fewer(&cut.Quoted, most) || shorter
		cut.Truncated = cut.Truncated || shorter
		return &cut, shorter
	}
	return out, false
}

// shorten cuts a text at a whole character.
func shorten(text *string, truncated *bool, most int) bool {
	if len(*text) <= most {
		return false
	}
	*text, *truncated = string(whole([]byte((*text)[:most]))), true
	return true
}

// fewer keeps the first names, of most bytes together.
func fewer(names *[]string, most int) bool {
	for i, name := range *names {
		if most -= len(name); most < 0 {
			*names = (*names)[:i:i]
			return true
		}
	}
	return false
}
