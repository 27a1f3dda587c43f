package provision

import (
	"fmt"
	"path"

	"github.com/atoll-run/atoll/internal/core/language"
	"github.com/atoll-run/atoll/internal/core/requirement"
	"github.com/atoll-run/atoll/internal/node/image"
)

// exactNames keeps apt-get from taking a name that it does not know, such as "python3.x", for a
// regular expression.
const exactNames = "APT::Cmd::Pattern-Only=true"

// aptGet is where every image of Debian's has it.
const aptGet = "/usr/bin/apt-get"

// programs are the programs to run for a set, in order. Names of packages come behind "--":
// none is taken for an option. The error says what the image lacks.
func programs(img *image.Image, s *requirement.Set) (all [][]string, err error) {
	if len(s.Apt) > 0 {
		all = append(all, []string{aptGet, "update", "-q"}, append([]string{aptGet, "install", "-q", "-y", "--no-install-recommends", "-o", exactNames, "--"}, s.Apt...))
	}
	if len(s.Pip) > 0 {
		python, ok := img.Interpreter(language.Python)
		if !ok {
			return nil, fmt.Errorf("pip: the image %q has no Python", img.Name)
		}
		all = append(all, append([]string{python.Path, "-I", "-m", "pip", "install", "--no-cache-dir", "--"}, s.Pip...))
	}
	if len(s.NPM) > 0 {
		node, ok := img.Interpreter(language.Node)
		if !ok {
			return nil, fmt.Errorf("npm: the image %q has no Node.js", img.Name)
		}
		all = append(all, append([]string{path.Join(path.Dir(node.Path), "npm"), "install", "--global", "--"}, s.NPM...))
	}
	return all, nil
}

// prefix is where npm installs, as seen by every user.
const prefix = "/usr/local"

// variables are those of the programs.
func variables() map[string]string {
	return map[string]string{
		"HOME": "/root", "TMPDIR": "/tmp", "LANG": "C.UTF-8",
		"DEBIAN_FRONTEND": "noninteractive", "DEBCONF_NONINTERACTIVE_SEEN": "true",
		"PIP_NO_INPUT": "1", "PIP_PROGRESS_BAR": "off", "PIP_ROOT_USER_ACTION": "ignore", "PIP_BREAK_SYSTEM_PACKAGES": "1", "PIP_USER": "0",
		"npm_config_prefix": prefix, "npm_config_cache": "/tmp/npm", "npm_config_fund": "false", "npm_config_audit": "false",
		"npm_config_update_notifier": "false", "npm_config_progress": "false",
	}
}

// imageVariables are those that programs need to find what was installed.
func imageVariables(s *requirement.Set) map[string]string {
	if len(s.NPM) == 0 {
		return nil
	}
	return map[string]string{"NODE_PATH": prefix + "/lib/node_modules"}
}
