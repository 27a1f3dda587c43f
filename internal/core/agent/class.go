package agent

import "slices"

// Class is an effect that tools have. Policies name classes beside tools, so that a list holds for
// tools whose names its author does not know, such as those of an agent that work is handed to.
type Class string

// Classes.
const (
	Code     Class = "code"     // runs programs that the model writes
	Files    Class = "files"    // reads or writes files of a sandbox
	Network  Class = "network"  // sends to, or reads from, hosts outside of the sandbox
	Delegate Class = "delegate" // hands work to other agents
)

// Classes lists every class.
var Classes = []Class{Code, Files, Network, Delegate}

// Names in policies that have a meaning of their own.
const (
	runCode  = "run_code"
	Handoffs = "handoffs" // all tools by which an agent hands on
)

// classes has the class of each built-in tool; "" for one that has no effect which a class names.
var classes = map[string]Class{
	runCode: Code, "shell": Code, "execute_code": Code,

	"read_file": Files, "write_file": Files, "edit_file": Files, "apply_patch": Files, "glob": Files, "grep": Files,
	"share_file": Files, "transfer": Files, "read_document": Files, "convert_document": Files, "organize_files": Files,

	"web_search": Network, "people_search": Network, "fetch_url": Network, "browse": Network,
	"open_page": Network, "read_page": Network, "follow_link": Network, "find_in_page": Network, "extract_from_page": Network, "screenshot_page": Network,

	"sandbox_create": "", "sandbox_list": "",
}

// ClassOf returns the class of a built-in tool; ok is false for a tool that is not built in.
func ClassOf(tool string) (c Class, ok bool) {
	c, ok = classes[tool]
	return
}

// effects returns all classes of effects of a built-in tool.
func effects(tool string, online bool) []Class {
	switch c := classes[tool]; c {
	case Code:
		return programs(online)
	case "":
		return nil
	default:
		return []Class{c}
	}
}

// programs are the classes of effects of programs in the sandbox.
func programs(online bool) []Class {
	if online {
		return []Class{Code, Files, Network}
	}
	return []Class{Code, Files}
}

// reserved reports whether a name in a policy is that of a class, or of a built-in tool or kind.
func reserved(name string) bool {
	_, kind := BuiltIn[name]
	_, tool := classes[name]
	return kind || tool || name == Handoffs || slices.Contains(Classes, Class(name))
}

// knows reports whether d means the server s by its name: d has the same server under that name,
// or nothing else that goes by it.
func (d *Definition) knows(s *Server) bool {
	if own := d.Server(s.Name); own != nil {
		return own.URL == s.URL && own.Command == s.Command && slices.Equal(own.Args, s.Args)
	}
	return !reserved(s.Name) && !d.hasCustom(s.Name)
}

// shadows reports whether the name of a class is that of a server or custom tool of d, which an
// allow list of d then means by it.
func (d *Definition) shadows(c Class) bool {
	return d.Server(string(c)) != nil || d.hasCustom(string(c))
}

func (d *Definition) hasCustom(name string) bool {
	return slices.ContainsFunc(d.Tools, func(t Tool) bool { return t.Type == Custom && t.Name == name })
}
