package api_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox.dev/shared/api"
)

func TestTheNearestOfOurNamesIsSuggested(t *testing.T) {
	ours := []string{"key", "name", "allowed_models", "allowed_users2", "allowed_users1"}
	for name, want := range map[string]string{
		"ky":                "key",
		"kx":                "",
		"nmea":              "name",
		"x":                 "",
		"Key":               "key",
		"allowed_modelsxyz": "allowed_models",
		"allowedmodelsxyzz": "",
		"allowed_users2x":   "allowed_users2", // nearer than the last
		"allowed_users":     "allowed_users2", // as near as the last
		"lowed_users1":      "allowed_users1",
		"":                  "",
	} {
		message := "unknown member"
		if want != "" {
			message += "; did you mean " + want + "?"
		}
		got := api.NewRequest(`{"` + name + `":1}`).Object(ours...).Issues()
		if diff := cmp.Diff([]api.Issue{{Message: message}}, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", name, diff)
		}
	}
}

func TestEveryUnknownMemberIsReported(t *testing.T) {
	got := api.NewRequest(`{"x":1,"y":2}`).Object("key").Issues()
	if diff := cmp.Diff([]api.Issue{{Message: "unknown member"}, {Message: "unknown member"}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
