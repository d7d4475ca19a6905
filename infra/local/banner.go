package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/term"

	"signalbox.dev/infra/local/edition"
)

// screen is the terminal for the banner. The zero value is no terminal.
type screen struct {
	// width is the number of columns; 0 means any.
	width int
	// colours is set if escape sequences may be printed.
	colours bool
}

func screenOf(out io.Writer) screen {
	file, ok := out.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return screen{}
	}
	width, _, err := term.GetSize(int(file.Fd()))
	if err != nil {
		width = 0
	}
	return screen{width: width, colours: os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
}

// strong is a text in bold.
func (s screen) strong(text string) string {
	if !s.colours {
		return text
	}
	return "\x1b[1m" + text + "\x1b[0m"
}

// command is a shell command, broken between its words if it is wider than the screen. Both
// forms can be pasted.
func (s screen) command(words []string) string {
	const first, next = "  ", "    "
	if whole := first + strings.Join(words, " "); s.width == 0 || len(whole) <= s.width {
		return whole
	}
	return first + strings.Join(words, " \\\n"+next)
}

// hasEnvoy reports whether Envoy is installed on this machine, or by `make routers`.
func hasEnvoy() bool {
	_, err := exec.LookPath("envoy")
	if err != nil {
		_, err = os.Stat(".build/routers/bin/envoy")
	}
	return err == nil
}

// banner is printed once everything answers. Its calls go to the base URL. Its lines are
// short, for narrow screens.
func banner(e *edition.Edition, baseURL, state string, s screen) string {
	if absolute, err := filepath.Abs(state); err == nil {
		state = absolute
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\nSignalbox is at %s\n", s.strong(baseURL))
	fmt.Fprintf(&b, "Its reference:  %s\n\n", s.strong(strings.TrimSuffix(e.BaseURL, "/api/v1")+"/docs"))
	b.WriteString("Read a sync job, store a credential,\ndelete a file:\n\n")
	for _, words := range e.Demo.Curls(baseURL) {
		b.WriteString(s.command(words) + "\n\n")
	}
	if hasEnvoy() {
		b.WriteString("Call models with stored keys, through Envoy:\n\n")
		b.WriteString(s.command([]string{"make", "router"}) + "\n\n")
	}
	b.WriteString("Operate it with .build/admin:\n\n")
	b.WriteString(s.command([]string{"make admin", "ARGS='key list'"}) + "\n\n")
	fmt.Fprintf(&b, "State:  %s\n", state)
	fmt.Fprintf(&b, "Logs:   %s\n", filepath.Join(state, "logs"))
	b.WriteString("Stop:   Ctrl-C keeps the state;\n        `make reset` removes it\n\n")
	return b.String()
}
