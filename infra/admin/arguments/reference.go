package arguments

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// ReferenceWord is the command that writes the reference of all commands.
const ReferenceWord = "__reference"

// Reference writes what the commands, arguments and flags are, as Markdown.
func Reference(to io.Writer, model *kong.Application) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# The operator's command\n\n<!-- Written by the command itself: make reference. -->\n\n%s\n\nEvery command takes these flags too:\n\n", model.Help)
	flags(&b, model.Flags)
	for _, leaf := range model.Leaves(true) {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n", leaf.FullPath(), leaf.Help)
		fmt.Fprintf(&b, "    admin %s\n", leaf.Summary())
		rows := len(leaf.Positional)
		for _, f := range own(leaf) {
			rows += len(f)
		}
		if rows > 0 {
			b.WriteString("\n")
		}
		for _, p := range leaf.Positional {
			fmt.Fprintf(&b, "* `%s`: %s\n", p.Summary(), p.Help)
		}
		for _, f := range own(leaf) {
			flags(&b, f)
		}
	}
	_, err := io.WriteString(to, b.String())
	return err
}

// own are the flags of the node and of what is above it, without those of the
// application.
func own(n *kong.Node) (all [][]*kong.Flag) {
	for ; n != nil && n.Type != kong.ApplicationNode; n = n.Parent {
		all = append(all, n.Flags)
	}
	slices.Reverse(all)
	return all
}

func flags(b *strings.Builder, of []*kong.Flag) {
	for _, f := range of {
		if f.Hidden {
			continue
		}
		fmt.Fprintf(b, "* `%s`", f.Summary())
		if f.Short != 0 {
			fmt.Fprintf(b, ", `-%c`", f.Short)
		}
		for _, name := range f.Envs {
			fmt.Fprintf(b, ", or the variable `%s`", name)
		}
		fmt.Fprintf(b, ": %s\n", f.Help)
	}
}
