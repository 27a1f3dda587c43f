package skill

import (
	"encoding/json"
	"math"
	"net/netip"
	"slices"
	"strings"

	"github.com/atoll-run/atoll/internal/core/fault"
	"github.com/atoll-run/atoll/internal/core/requirement"
	"github.com/atoll-run/atoll/internal/core/runtime"
	"github.com/atoll-run/atoll/internal/core/wire"
)

// Names of the built-in skills.
const (
	Planning   = "structured-planning"
	Reflection = "reflection-loop"
	State      = "long-running-state"
	Code       = "code-execution"
	Files      = "file-management"
	Browsing   = "web-browsing"
)

// Names of the tools that skills add.
const (
	PlanTool      = "update_plan"
	ReadStateTool = "read_state"
	SaveStateTool = "save_state"
	ReadTool      = "read_skill" // for a tenant's skills

	ReadDocumentTool    = "read_document"
	ConvertDocumentTool = "convert_document"
	OrganizeTool        = "organize_files"

	OpenPageTool   = "open_page"
	ReadPageTool   = "read_page"
	FollowLinkTool = "follow_link"
	FindTool       = "find_in_page"
	ExtractTool    = "extract_from_page"
	ScreenshotTool = "screenshot_page"
)

// Configurations of the built-in skills. Omitted fields use their defaults.
type (
	// PlanningConfig configures Planning.
	PlanningConfig struct {
		MaxSteps *wire.Whole `json:"max_steps,omitzero" minimum:"1" maximum:"100" default:"20"`
	}
	// ReflectionConfig configures Reflection.
	ReflectionConfig struct {
		MaxIterations    *wire.Whole `json:"max_iterations,omitzero" minimum:"1" maximum:"10" default:"3"`
		QualityThreshold *float64    `json:"quality_threshold,omitzero" minimum:"0" maximum:"1" default:"0.8"`
		Rubric           *string     `json:"rubric,omitzero" default:"Is the answer correct, complete, clear, and what was asked for?"`
	}
	// StateConfig configures State.
	StateConfig struct {
		CheckpointIntervalMS *wire.Whole `json:"checkpoint_interval_ms,omitzero" minimum:"1000" maximum:"86400000" default:"60000"`
		MaxStateSizeKB       *wire.Whole `json:"max_state_size_kb,omitzero" minimum:"1" maximum:"1024" default:"64"`
	}
	// CodeConfig configures Code.
	CodeConfig struct {
		MaxAttempts *wire.Whole `json:"max_attempts,omitzero" minimum:"1" maximum:"10" default:"3"`
	}
	// FilesConfig configures Files.
	FilesConfig struct {
		Formats   *[]string   `json:"formats,omitzero"` // all if omitted
		MaxFileMB *wire.Whole `json:"max_file_mb,omitzero" minimum:"1" maximum:"200" default:"25"`
	}
	// BrowsingConfig configures Browsing.
	BrowsingConfig struct {
		AllowedDomains *[]string   `json:"allowed_domains,omitzero"` // all that the network allows if omitted
		MaxPages       *wire.Whole `json:"max_pages,omitzero" minimum:"1" maximum:"200" default:"20"`
		MaxTextKB      *wire.Whole `json:"max_text_kb,omitzero" minimum:"1" maximum:"64" default:"32"`
		PageTimeoutMS  *wire.Whole `json:"page_timeout_ms,omitzero" minimum:"1000" maximum:"120000" default:"30000"`
		Screenshots    *bool       `json:"screenshots,omitzero" default:"true"`
	}
)

// Formats lists the document formats that Files supports.
var Formats = []string{"pdf", "docx", "xlsx", "pptx"}

const (
	maxRubric  = 8 << 10
	maxDomains = 64
)

func whole(path string, n *wire.Whole, least, most wire.Whole) error {
	if n != nil && (*n < least || *n > most || float64(*n) != math.Trunc(float64(*n))) {
		return invalid("%s must be a whole number between %.0f and %.0f", path, least, most)
	}
	return nil
}

func (c *PlanningConfig) check(path string) error {
	return whole(path+".max_steps", c.MaxSteps, 1, 100)
}

func (c *ReflectionConfig) check(path string) error {
	switch t := c.QualityThreshold; {
	case t != nil && !(*t >= 0 && *t <= 1):
		return invalid("%s.quality_threshold must be between 0 and 1", path)
	case c.Rubric != nil && (strings.TrimSpace(*c.Rubric) == "" || len(*c.Rubric) > maxRubric):
		return invalid("%s.rubric must have 1 to %d bytes", path, maxRubric)
	}
	return whole(path+".max_iterations", c.MaxIterations, 1, 10)
}

func (c *StateConfig) check(path string) error {
	if err := whole(path+".checkpoint_interval_ms", c.CheckpointIntervalMS, 1000, 86_400_000); err != nil {
		return err
	}
	return whole(path+".max_state_size_kb", c.MaxStateSizeKB, 1, 1024)
}

func (c *CodeConfig) check(path string) error {
	return whole(path+".max_attempts", c.MaxAttempts, 1, 10)
}

func (c *FilesConfig) check(path string) error {
	if c.Formats != nil {
		if len(*c.Formats) == 0 {
			return invalid("%s.formats must name at least one of %s", path, strings.Join(Formats, ", "))
		}
		for i, f := range *c.Formats {
			if !slices.Contains(Formats, f) || slices.Contains((*c.Formats)[:i], f) {
				return invalid("%s.formats[%d] must be one of %s, without duplicates", path, i, strings.Join(Formats, ", "))
			}
		}
	}
	return whole(path+".max_file_mb", c.MaxFileMB, 1, 200)
}

func (c *BrowsingConfig) check(path string) error {
	if c.AllowedDomains != nil {
		if n := len(*c.AllowedDomains); n < 1 || n > maxDomains {
			return invalid("%s.allowed_domains must have 1 to %d domains", path, maxDomains)
		}
		for i, d := range *c.AllowedDomains {
			if _, err := netip.ParseAddr(d); err == nil {
				continue
			}
			if strings.Contains(d, "*") {
				return invalid("%s.allowed_domains[%d] must be a domain such as example.com, which includes its subdomains", path, i)
			}
			if err := runtime.CheckHost(d); err != nil {
				return invalid("%s.allowed_domains[%d]: %v", path, i, err)
			}
		}
	}
	for _, one := range []struct {
		name        string
		n           *wire.Whole
		least, most wire.Whole
	}{{"max_pages", c.MaxPages, 1, 200}, {"max_text_kb", c.MaxTextKB, 1, 64}, {"page_timeout_ms", c.PageTimeoutMS, 1000, 120_000}} {
		if err := whole(path+"."+one.name, one.n, one.least, one.most); err != nil {
			return err
		}
	}
	return nil
}

// config is the configuration of a built-in skill.
type config interface{ check(path string) error }

// builtIn maps the built-in skills to their configurations.
var builtIn = map[string]func() config{
	Planning:   func() config { return new(PlanningConfig) },
	Reflection: func() config { return new(ReflectionConfig) },
	State:      func() config { return new(StateConfig) },
	Code:       func() config { return new(CodeConfig) },
	Files:      func() config { return new(FilesConfig) },
	Browsing:   func() config { return new(BrowsingConfig) },
}

// BuiltIn reports whether a built-in skill has the name.
func BuiltIn(name string) bool {
	_, is := builtIn[name]
	return is
}

// Extras returns the extras of the default image that a built-in skill's tools need.
func Extras(name string) []string {
	switch name {
	case Files:
		return []string{requirement.Browser, requirement.Office}
	case Browsing:
		return []string{requirement.Browser}
	}
	return nil
}

// CheckConfig validates the configuration of a built-in skill. Errors begin with path.
func CheckConfig(path, name string, text json.RawMessage) error {
	build, ok := builtIn[name]
	if !ok {
		return invalid("%s: skill %s not found", path, name)
	}
	c := build()
	if err := configs.Decode(text, c); err != nil {
		return fault.Wrap(fault.Invalid, err, path+".config: "+err.Error())
	}
	return c.check(path + ".config")
}

// configs decodes configurations and applies defaults.
var configs = wire.Decoder{Noun: "it", Arguments: true}

// Config decodes a configuration that CheckConfig accepted.
func Config[T any](text json.RawMessage) (c T, err error) {
	err = configs.Decode(text, &c)
	if f, ok := any(&c).(*FilesConfig); ok && f.Formats == nil {
		f.Formats = &Formats
	}
	return c, err
}
