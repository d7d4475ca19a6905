package main

import (
	"fmt"
	"path/filepath"
	"strings"

	"signalbox.dev/infra/local/edition"
)

// banner is printed when everything answers. Its calls go to the base URL. Its lines are
// short, for narrow terminals.
func banner(e *edition.Edition, baseURL, state string) string {
	if absolute, err := filepath.Abs(state); err == nil {
		state = absolute
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\nSignalbox is at %s\n", baseURL)
	fmt.Fprintf(&b, "Its reference:  %s\n\n", strings.TrimSuffix(e.BaseURL, "/api/v1")+"/docs")
	b.WriteString("A call of each operation:\n\n")
	for _, command := range e.Demo.Curls(baseURL) {
		b.WriteString("  " + command + "\n\n")
	}
	b.WriteString("Operate it with .build/admin:\n\n  make admin ARGS='key list'\n\n")
	fmt.Fprintf(&b, "State:  %s\n", state)
	fmt.Fprintf(&b, "Logs:   %s\n", filepath.Join(state, "logs"))
	b.WriteString("Stop:   Ctrl-C keeps the state;\n        `make reset` removes it\n\n")
	return b.String()
}
