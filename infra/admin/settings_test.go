package main

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox.dev/infra/testkit"
	"signalbox.dev/shared/byok"
)

// A list shows the operator every setting of a credential.
func TestEverySettingIsListed(t *testing.T) {
	settings := testkit.FilledSettings(t)
	view, err := json.Marshal(viewCredential(byok.Credential{Settings: settings}))
	testkit.Must(t, err)
	var shown map[string]any
	testkit.Must(t, json.Unmarshal(view, &shown))
	for name, want := range testkit.SettingsByName(t, settings) {
		if diff := cmp.Diff(want, shown[name]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
