package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox.dev/infra/admin/arguments"
	"signalbox.dev/infra/admin/output"
	"signalbox.dev/infra/admin/target"
	"signalbox.dev/infra/testkit"
	"signalbox.dev/shared/auth"
	"signalbox.dev/shared/byok"
	"signalbox.dev/shared/ids"
)

func TestALifetimeMayBeInDays(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]time.Duration{
		"90d": 90 * 24 * time.Hour, "1d": 24 * time.Hour, "36500d": arguments.MaxDays * 24 * time.Hour, "36h": 36 * time.Hour, "1h30m": 90 * time.Minute,
		"0d": 0, "0s": 0, "-1d": 0, "-9223372036854775807d": 0, "-2147483648d": 0, "-1h": 0, "36501d": 0, "2147483647d": 0, "99999999999d": 0, "876001h": 0,
		"90": 0, "d": 0, "": 0, "1.5d": 0, "1d12h": 0, "ten days": 0,
	} {
		got, err := arguments.ParseLifetime(given)
		if time.Duration(got) != want || (err == nil) != (want > 0) {
			t.Errorf("%q is %s, %v; want %s", given, time.Duration(got), err, want)
		}
	}
	now := time.Now()
	if end, err := (keyCreate{ExpiresIn: arguments.Lifetime(time.Hour)}).end(now); err != nil || !end.Equal(now.Add(time.Hour)) {
		t.Errorf("an hour from %s ends at %s, %v", now, end, err)
	}
}

// A list leaves out columns, or shortens them, until it fits the terminal. If no table fits,
// each row is a card.
func TestListsFitTheTerminal(t *testing.T) {
	t.Parallel()
	const id = ids.Credential("11111111-2222-4333-8444-555555555555")
	hash := strings.Repeat("0123456789ab", 5) + "cdef" // callers need it whole, for allow-lists
	credentials := []byok.Credential{{ID: id, Account: ids.Account(id), Workspace: ids.Workspace(id), Label: "sk-...efgh", SortOrder: 7, Settings: byok.Settings{Provider: "openai", Name: "n"}}}
	keys := []keyView{{Hash: auth.KeyHash(hash), Kind: auth.Standard, Name: "ci", State: "active"}}
	showKeys := func(s *session) error { return showKeys(s, keys) }
	showCredentials := func(s *session) error { return showCredentials(s, credentials, true) }
	for _, c := range []struct {
		show  func(*session) error
		width int
		want  string
	}{
		{showCredentials, 0, "CREDENTIAL PROVIDER ORDER NAME LABEL STATE FLAGS ONLY FOR CREATED WORKSPACE ACCOUNT " + string(id) + " openai 7 n sk-...efgh active - - - " + string(id) + " " + string(id)},
		{showCredentials, 80, "ID PROVIDER ORDER LABEL STATE FLAGS ONLY FOR IN 11111111 openai 7 sk-...efgh active - - 11111111"},
		{showCredentials, 65, "ID PROVIDER LABEL STATE FLAGS ONLY FOR IN 11111111 openai sk-...efgh active - - 11111111"},
		{showCredentials, 20, "credential " + string(id) + " provider openai order 7 name n label sk-...efgh state active flags - only for - created - workspace " + string(id) + " account " + string(id)},
		{showKeys, 117, "KEY HASH KIND NAME WORKSPACE STATE CREATED EXPIRES " + hash + " standard ci - active - -"},
		{showKeys, 116, "KEY HASH KIND NAME WORKSPACE STATE CREATED EXPIRES " + hash[:12] + " standard ci - active - -"},
	} {
		var shown strings.Builder
		testkit.Must(t, c.show(&session{out: output.Writer{To: &shown, Width: c.width}}))
		if diff := cmp.Diff(c.want, strings.Join(strings.Fields(shown.String()), " ")); diff != "" {
			t.Errorf("%d columns (-want +got):\n%s", c.width, diff)
		}
	}
}

// The operator sees each setting in JSON and in words. fmt would print a pointer as an
// address.
func TestEverySettingIsShown(t *testing.T) {
	t.Parallel()
	inJSON := func(value any) (read any) {
		encoded, err := json.Marshal(value)
		testkit.Must(t, err)
		testkit.Must(t, json.Unmarshal(encoded, &read))
		return read
	}
	type others struct {
		Text, NoText     *string
		Number, NoNumber *int64
		Flag             *bool
		Plain            int64
	}
	filled, number := testkit.FilledSettings(t), int64(7)
	view := inJSON(viewCredential(byok.Credential{Settings: filled})).(map[string]any)
	for name, value := range filled.ByName() {
		if diff := cmp.Diff(inJSON(value), view[name]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	for _, settings := range []any{filled, byok.Settings{}, others{Text: new("a\nb"), Number: &number, Flag: new(false), Plain: number}} {
		for field, value := range reflect.ValueOf(settings).Fields() {
			want := inJSON(value.Interface())
			if got := settingText(value.Interface()); got != asWords(want, value.Kind() == reflect.Slice) {
				t.Errorf("the setting %s, %v in JSON, is shown as %q", field.Name, want, got)
			}
		}
	}
}

// asWords returns a JSON value in the form that the operator reads.
func asWords(value any, isList bool) string {
	switch value := value.(type) {
	case nil:
		return map[bool]string{true: "any", false: "-"}[isList]
	case bool:
		return map[bool]string{true: "yes", false: "no"}[value]
	case []any:
		if len(value) == 0 {
			return "none"
		}
		var all []string
		for _, element := range value {
			all = append(all, asWords(element, false))
		}
		return strings.Join(all, ", ")
	}
	return fmt.Sprint(value)
}

// The command relies on two facts of the template: the names of its outputs, and the
// timeout of a function.
func TestTheCommandAgreesWithTheTemplate(t *testing.T) {
	t.Parallel()
	template, err := os.ReadFile("../../template.yaml")
	testkit.Must(t, err)
	outputs := regexp.MustCompile(`(?ms)^Outputs:\n.*`).Find(template)
	for field := range reflect.TypeFor[target.Outputs]().Fields() {
		if !strings.Contains(string(outputs), "\n  "+field.Name+":\n") {
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

func TestMakeAdminWorksOnTheEdition(t *testing.T) {
	t.Parallel()
	dry := exec.Command("make", "--no-print-directory", "-n", "-C", "../..", "admin", "ARGS=key list")
	printed, err := dry.CombinedOutput()
	if err != nil || !strings.Contains(string(printed), "admin --local .local key list") {
		t.Errorf("make -n admin: %v, want admin with --local .local:\n%s", err, printed)
	}
}
