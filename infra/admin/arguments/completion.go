package arguments

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"signalbox.dev/shared/byok"
)

// CompleteWord is the command with which a completion script asks for candidates.
// The words up to the cursor follow; the last is the word under the cursor.
const CompleteWord = "__complete"

// Completion writes a script that asks admin for candidates, so it cannot become outdated.
type Completion struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish. To try it: source <(admin completion bash), or admin completion fish | source."`
}

// AfterApply implements a hook of kong's: a script needs no target.
func (c Completion) AfterApply(k *kong.Kong) error {
	script := map[string]string{
		"bash": `_admin() {
  local IFS=$'\n'
  COMPREPLY=($("${COMP_WORDS[0]}" ` + CompleteWord + ` "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _admin admin`,
		"zsh": `#compdef admin
_admin() {
  local -a found
  found=(${(f)"$(${(Q)words[1]} ` + CompleteWord + ` "${(@Q)words[2,CURRENT]}" 2>/dev/null)"})
  if (( $#found )); then compadd -a found; else _files; fi
}
compdef _admin admin`,
		"fish": `complete -c admin -f -a '(admin ` + CompleteWord + ` (commandline -opc)[2..] (commandline -ct) 2>/dev/null)'
complete -c admin -n '__fish_seen_subcommand_from upload' -F`,
	}[c.Shell]
	_, err := fmt.Fprintln(k.Stdout, script)
	return cmp.Or(err, ErrShown)
}

// Complete writes the candidates for the last word, one on each line: commands, flags and
// listed values. It reads no table, so it knows no ids.
func Complete(to io.Writer, root *kong.Node, words []string) error {
	if len(words) == 0 {
		return nil
	}
	last := words[len(words)-1]
	for _, candidate := range candidates(root, words[:len(words)-1], strings.HasPrefix(last, "-")) {
		if candidate == "" || !strings.HasPrefix(candidate, last) {
			continue
		}
		if _, err := fmt.Fprintln(to, candidate); err != nil {
			return err
		}
	}
	return nil
}

func candidates(at *kong.Node, before []string, isFlag bool) (all []string) {
	flags := slices.Clone(at.Flags)
	var valueOf *kong.Flag // the flag whose value comes next
	for _, word := range before {
		flag := slices.IndexFunc(flags, func(f *kong.Flag) bool { return "--"+f.Name == word && !f.IsBool() })
		child := slices.IndexFunc(at.Children, func(n *kong.Node) bool { return n.Name == word })
		switch {
		case valueOf != nil:
			valueOf = nil
		case flag >= 0:
			valueOf = flags[flag]
		case child >= 0:
			at = at.Children[child]
			flags = append(flags, at.Flags...)
		}
	}
	switch {
	case valueOf != nil && valueOf.Target.Type() == reflect.TypeFor[[]Provider]():
		return byok.Providers()
	case valueOf != nil:
		return valueOf.EnumSlice()
	case isFlag:
		for _, flag := range flags {
			all = append(all, "--"+flag.Name)
		}
		return all
	}
	for _, child := range at.Children {
		all = append(all, child.Name)
	}
	for _, positional := range at.Positional {
		all = append(all, positional.EnumSlice()...)
	}
	return all
}

// ErrShown ends a command line that only asked for help, the version or a
// completion script.
var ErrShown = errors.New("shown")
