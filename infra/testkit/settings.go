package testkit

import (
	"reflect"
	"testing"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"

	"signalbox.dev/shared/byok"
)

// FilledSettings returns settings with a value in every field, and every field of
// text with its own.
func FilledSettings(t testing.TB) byok.Settings {
	t.Helper()
	var s byok.Settings
	all := reflect.ValueOf(&s).Elem()
	for i := range all.NumField() {
		field := all.Field(i)
		if field.Kind() == reflect.Pointer {
			field.Set(reflect.New(field.Type().Elem()))
			field = field.Elem()
		}
		switch name := all.Type().Field(i).Name; field.Interface().(type) {
		case string:
			field.SetString(name)
		case bool:
			field.SetBool(true)
		case int64:
			field.SetInt(7)
		case []string:
			field.Set(reflect.ValueOf([]string{name}))
		default:
			t.Fatalf("no value for the setting %s", name)
		}
	}
	return s
}

// SettingsByName returns settings under their names in the API, with the types
// that JSON has.
func SettingsByName(t testing.TB, s byok.Settings) map[string]any {
	t.Helper()
	stored, err := attributevalue.MarshalMap(s)
	Must(t, err)
	var named map[string]any
	if err := attributevalue.UnmarshalMap(stored, &named); err != nil || len(named) != reflect.TypeOf(s).NumField() {
		t.Fatalf("%d settings have names, %v", len(named), err)
	}
	return named
}
