package debian

import (
	"bufio"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// hostMirror is the archive that this machine's apt uses, "" when it is not
// Debian or does not say.
func hostMirror() string {
	release := osRelease("/etc/os-release")
	if release["ID"] != "debian" || release["VERSION_CODENAME"] == "" {
		return ""
	}
	files, _ := filepath.Glob("/etc/apt/sources.list.d/*")
	for _, file := range append([]string{"/etc/apt/sources.list"}, files...) {
		data, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		var uri string
		switch filepath.Ext(file) {
		case ".sources":
			uri = fromStanzas(string(data), release["VERSION_CODENAME"])
		case ".list":
			uri = fromLines(string(data), release["VERSION_CODENAME"])
		}
		if uri != "" {
			return uri
		}
	}
	return ""
}

// osRelease reads a file of NAME=VALUE lines.
func osRelease(file string) map[string]string {
	values := map[string]string{}
	f, err := os.Open(file)
	if err != nil {
		return values
	}
	defer f.Close()
	for sc := bufio.NewScanner(f); sc.Scan(); {
		if name, value, ok := strings.Cut(sc.Text(), "="); ok {
			values[name] = strings.Trim(value, `"'`)
		}
	}
	return values
}

// fromLines reads apt's one-line format.
func fromLines(text, codename string) string {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "deb ") {
			continue
		}
		line = strings.TrimSpace(strings.TrimPrefix(line, "deb "))
		if strings.HasPrefix(line, "[") { // options
			_, rest, ok := strings.Cut(line, "]")
			if !ok {
				continue
			}
			line = rest
		}
		fields := strings.Fields(line)
		if len(fields) >= 3 && fields[1] == codename && slices.Contains(fields[2:], "main") && web(fields[0]) {
			return fields[0]
		}
	}
	return ""
}

// fromStanzas reads apt's deb822 format.
func fromStanzas(text, codename string) string {
	for stanza := range strings.SplitSeq(text, "\n\n") {
		values := map[string][]string{}
		for line := range strings.Lines(stanza) {
			if name, value, ok := strings.Cut(line, ":"); ok && !strings.HasPrefix(line, "#") {
				values[strings.ToLower(name)] = strings.Fields(value)
			}
		}
		if slices.Contains(values["types"], "deb") && slices.Contains(values["suites"], codename) &&
			slices.Contains(values["components"], "main") && len(values["uris"]) > 0 && web(values["uris"][0]) {
			return values["uris"][0]
		}
	}
	return ""
}

// web reports whether mmdebstrap can use an address whatever the new root holds.
func web(uri string) bool {
	return strings.HasPrefix(uri, "http://") || strings.HasPrefix(uri, "https://")
}
