package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"signalbox.dev/infra/test/kit"
)

// A command that asks is the last one of its block: what is pasted after it would be the
// answer. A command asks if it has --yes, and `sam deploy` if samconfig.toml says so.
func TestACommandThatAsksEndsItsBlock(t *testing.T) {
	t.Parallel()
	read := func(path string) string {
		text, err := os.ReadFile(path) //nolint:gosec // our own documents
		kit.Must(t, err)
		return string(text)
	}
	asking := []string{"read -rs"}
	for _, command := range newParser().Model.Leaves(true) {
		for _, flag := range command.Flags {
			if flag.Name == "yes" {
				asking = append(asking, strings.ReplaceAll(command.FullPath(), " ", `(?: -\S+)* `))
			}
		}
	}
	for _, target := range regexp.MustCompile(`(?m)^([\w-]+):.*\n(?:\t.*\n)*\t.*--yes`).FindAllStringSubmatch(read("../../Makefile"), -1) {
		asking = append(asking, "make "+target[1])
	}
	if strings.Contains(read("../../samconfig.toml"), "confirm_changeset = true") {
		asking = append(asking, "sam deploy")
	}
	asks := regexp.MustCompile(`\b(?:` + strings.Join(asking, "|") + `)[^;&|\n]*`)
	block := regexp.MustCompile("(?ms)^ *```(?:sh|bash)\n(.*?)^ *```$")
	seen := 0
	for _, pattern := range []string{"../../*.md", "../../.github/*.md", "../*.md", "../*/*.md"} {
		pages, err := filepath.Glob(pattern)
		kit.Must(t, err)
		for _, page := range pages {
			for _, found := range block.FindAllStringSubmatch(read(page), -1) {
				commands := strings.TrimSpace(strings.ReplaceAll(found[1], "\\\n", ""))
				for _, at := range asks.FindAllStringIndex(commands, -1) {
					seen++
					if command := commands[at[0]:at[1]]; at[1] < len(commands) && !strings.Contains(command, "--dry-run") {
						t.Errorf("%s: this asks, and is not the last of its block: %s", page, command)
					}
				}
			}
		}
	}
	if len(asking) < 10 || seen < 10 {
		t.Errorf("%d commands ask: %q", seen, asking)
	}
}
