package arguments

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/alecthomas/kong"
)

// ReferenceWord is the command that writes the reference of all commands.
const ReferenceWord = "__reference"

// Reference describes the commands, arguments and flags in Markdown.
func Reference(to io.Writer, model *kong.Application) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# The operator's command\n\n<!-- Written by the command itself: make reference. -->\n\n%s\n\nEvery command takes these flags too:\n\n", model.Help)
	flags(&b, model.Flags)
	for _, leaf := range model.Leaves(true) {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n", path(leaf), leaf.Help)
		_, summary, _ := strings.Cut(leaf.Summary(), leaf.Name) // without the aliases that kong puts before it
		fmt.Fprintf(&b, "    %s%s\n", path(leaf), summary)
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

// path is the command with its parents.
func path(n *kong.Node) string {
	if n.Parent == nil {
		return n.Name
	}
	return path(n.Parent) + " " + n.Name
}

// Overview writes one screen: which commands there are.
func Overview(to io.Writer, model *kong.Application) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\nUsage: admin COMMAND …\n\n", model.Help)
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, n := range model.Children {
		if n.Hidden {
			continue
		}
		verbs := make([]string, len(n.Children))
		for i, child := range n.Children {
			verbs[i] = child.Name
		}
		_, _ = fmt.Fprintf(table, "  %s\t%s\n", n.Name, cmp.Or(strings.Join(verbs, ", "), n.Help))
	}
	_ = table.Flush() // into memory
	b.WriteString("\nadmin help COMMAND explains one; admin --help shows all with their flags.\n")
	_, err := io.WriteString(to, b.String())
	return err
}

// own are the flags of the node and its parents, without those of the application.
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
