package arguments

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/alecthomas/kong"
)

// Overview writes one screen: which commands there are.
func Overview(to io.Writer, model *kong.Application) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\nUsage: admin COMMAND …\n\n", model.Help)
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, n := range model.Children {
		verbs := make([]string, len(n.Children))
		for i, child := range n.Children {
			verbs[i] = child.Name
		}
		_, _ = fmt.Fprintf(table, "  %s\t%s\n", n.Name, cmp.Or(strings.Join(verbs, ", "), n.Help))
	}
	_ = table.Flush() // into memory
	b.WriteString("\nadmin help COMMAND explains one with its flags; admin --help shows all.\n")
	_, err := io.WriteString(to, b.String())
	return err
}
