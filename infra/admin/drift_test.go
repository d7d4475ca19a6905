package main

import (
	"os"
	"reflect"
	"regexp"
	"strconv"
	"testing"
	"time"

	"signalbox.dev/infra/admin/target"
	"signalbox.dev/infra/testkit"
)

// The command relies on two facts of the template: the names of its outputs, and the
// timeout of a function.
func TestTheTemplateSaysWhatTheCommandReliesOn(t *testing.T) {
	template, err := os.ReadFile("../../template.yaml")
	testkit.Must(t, err)
	section := regexp.MustCompile(`(?ms)^Outputs:\n(.*)`).FindSubmatch(template)
	if section == nil {
		t.Fatal("the template has no outputs")
	}
	names := map[string]bool{}
	for _, name := range regexp.MustCompile(`(?m)^  (\w+):$`).FindAllSubmatch(section[1], -1) {
		names[string(name[1])] = true
	}
	for field := range reflect.TypeFor[target.Outputs]().Fields() {
		if !names[field.Name] {
			t.Errorf("the template has no output %s", field.Name)
		}
	}
	timeouts := regexp.MustCompile(`(?m)^ +Timeout: (\d+)$`).FindAllSubmatch(template, -1)
	if len(timeouts) == 0 {
		t.Fatal("the template sets no timeout")
	}
	for _, timeout := range timeouts {
		seconds, err := strconv.Atoi(string(timeout[1]))
		if limit := time.Duration(seconds) * time.Second; err != nil || limit >= settled {
			t.Errorf("a function may run for %s; a purge waits %s", limit, settled)
		}
	}
}
