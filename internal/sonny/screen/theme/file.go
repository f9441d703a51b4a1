package theme

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"agent/internal/sonny/screen/text"
	"agent/protocol"

	"github.com/pelletier/go-toml/v2"
	"golang.org/x/sys/unix"
)

// fileMost bounds a theme's file.
const fileMost = 64 << 10

var nameOK = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// Ground is what a theme is chosen by beside the setting.
type Ground struct {
	Known bool  // the terminal said what its background is
	Dark  bool  // what it said
	Color Color // not set where it said only whether it is dark
	Depth Depth
	Dir   string // ~/.agents/themes
}

// Check is what Choose finds wrong with a setting on any terminal; dir is
// ~/.agents/themes.
func Check(setting, dir string) *protocol.Error {
	_, fault := Choose(setting, Ground{Depth: True, Dir: dir})
	return fault
}

// Choose is the theme of a setting (tui.theme, --theme). Without colours it is none,
// whatever the setting. A file that cannot be used, and a name that is none, are faults
// beside the theme that auto would take.
func Choose(setting string, g Ground) (Theme, *protocol.Error) {
	if g.Depth == Mono {
		return None(), nil
	}
	switch setting {
	case "", "auto":
		return auto(g), nil
	case "dark":
		return fitted(Dark(), g, true), nil
	case "light":
		return fitted(Light(), g, false), nil
	case "ansi":
		return ANSI(), nil
	case "none":
		return None(), nil
	}
	t, err := load(setting, g)
	if err != nil {
		return auto(g), protocol.Fail("config_invalid", err.Error())
	}
	return t, nil
}

func auto(g Ground) Theme {
	switch {
	case !g.Known || g.Depth == Sixteen:
		return ANSI()
	case g.Color.Set():
		return OnBackground(g.Color)
	}
	return OfScheme(g.Dark)
}

// fitted is a theme that was asked for, moved away from the background where that is
// known and of its kind.
func fitted(t Theme, g Ground, dark bool) Theme {
	if g.Known && g.Color.Set() && IsDark(g.Color) == dark {
		return OnBackground(g.Color)
	}
	return t
}

// load reads ~/.agents/themes/NAME.toml. A role that it does not name is as in the
// built-in theme for the background.
func load(name string, g Ground) (Theme, error) {
	path, data, err := g.file(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Theme{}, fmt.Errorf("tui.theme: %q is no theme: it is one of %s, or the name of a file in ~/.agents/themes",
			name, strings.Join(builtin, " "))
	case err != nil:
		return Theme{}, fmt.Errorf("tui.theme: %w", err)
	}
	base := OfScheme(!g.Known || g.Dark)
	if g.Known && g.Color.Set() {
		base = OnBackground(g.Color)
	}
	t, err := parse(data, base)
	if err != nil {
		return Theme{}, fmt.Errorf("%s: %w", path, err)
	}
	t.Name = name
	return t, nil
}

// file is the text of a theme's file; fs.ErrNotExist for a name that no file can have.
func (g *Ground) file(name string) (path string, data []byte, err error) {
	if !nameOK.MatchString(name) {
		return "", nil, fs.ErrNotExist
	}
	path = filepath.Join(g.Dir, name+".toml")
	data, err = read(path)
	return path, data, err
}

// read takes a regular file of the person's, no link, of a bounded size.
func read(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no regular file", path)
	}
	data, err := io.ReadAll(io.LimitReader(f, fileMost+1))
	if err == nil && len(data) > fileMost {
		err = fmt.Errorf("%s is larger than %d KiB", path, fileMost>>10)
	}
	return data, err
}

// parse puts the roles of a theme's file over a theme. For panel and select the colour
// is the ground, for the others that of the text.
func parse(data []byte, base Theme) (Theme, error) {
	var values map[string]any
	if err := toml.Unmarshal(data, &values); err != nil {
		return Theme{}, err
	}
	t := Theme{styles: slices.Clone(base.styles)}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		role, ok := roleOf(key)
		if !ok {
			return Theme{}, fmt.Errorf("%q is no role", key)
		}
		c, err := colorOf(values[key])
		if err != nil {
			return Theme{}, fmt.Errorf("%s: %w", key, err)
		}
		if role == text.Panel || role == text.Select {
			t.styles[role].Bg = c
		} else {
			t.styles[role].Fg = c
		}
	}
	return t, nil
}

func roleOf(name string) (text.Role, bool) {
	for r := range text.Roles() {
		if r.String() == name {
			return r, true
		}
	}
	return 0, false
}

var colorNames = []string{"black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"}

// colorOf is a colour as a theme's file writes it: "#rrggbb", a number of the terminal's
// palette, a name, a name after "bright-", or "default".
func colorOf(v any) (Color, error) {
	if n, ok := v.(int64); ok && n >= 0 && n <= 255 {
		return Index(uint8(n)), nil
	}
	s, _ := v.(string)
	if h, ok := strings.CutPrefix(s, "#"); ok && len(h) == 6 {
		if n, err := strconv.ParseUint(h, 16, 32); err == nil {
			return hex(uint32(n)), nil
		}
	}
	name, bright := strings.CutPrefix(s, "bright-")
	if i := slices.Index(colorNames, name); i >= 0 {
		if bright {
			i += 8
		}
		return Index(uint8(i)), nil
	}
	if s == "default" {
		return Color{}, nil
	}
	return Color{}, fmt.Errorf("%v is no colour: write \"#rrggbb\", 0 to 255, default, or one of %s, with bright- before it or not",
		v, strings.Join(colorNames, " "))
}
