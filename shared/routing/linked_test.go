package routing_test

import (
	"os/exec"
	"strings"
	"testing"
)

// No function may read a credential: their binaries do not contain the code.
func TestNoFunctionLinksRouting(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "signalbox.dev/functions/...").Output()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(out), "signalbox.dev/shared/byok\n") {
		t.Fatalf("go list does not list what the functions link: %s", out)
	}
	if strings.Contains(string(out), "signalbox.dev/shared/routing") {
		t.Error("a function links shared/routing")
	}
}
