package debian

import _ "embed"

// webModule searches the web and reads pages by way of the host: docs/reference/responses.md.
//
//go:embed files/atoll_web.py
var webModule string

// searchModule is the client of searches that code for models expects in a sandbox.
//
//go:embed files/perplexity.py
var searchModule string

// fontsModule makes matplotlib's list of fonts, and adds the user's to it.
//
//go:embed files/atoll_fonts.py
var fontsModule string

// webCommand is the module as a command. It says where its module is, so that it works in any
// folder and without a site.
const webCommand = "#!/usr/bin/python3 -IS\nimport sys\nsys.path.append(\"" + modules + "\")\nimport atoll_web\nsys.exit(atoll_web.main())\n"

// modules is where Debian's Python looks for modules of packages.
const modules = "/usr/lib/python3/dist-packages"

// programs are commands that the image gets.
var programs = map[string]string{"/usr/local/bin/atoll-web": webCommand}
