package main

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/alecthomas/kong"

	"signalbox.dev/shared/ids"
)

// uuids has kong read the ids of one kind.
func uuids[ID ~string]() kong.Option {
	return parsed(func(s string) (ID, error) {
		id, ok := ids.Parse[ID](s)
		if !ok {
			return "", fmt.Errorf("%q is not an id (a UUID)", s)
		}
		return id, nil
	})
}

// fileIDs has kong read file ids.
func fileIDs() kong.Option {
	return parsed(func(s string) (ids.File, error) {
		id, ok := ids.ParseFile(s)
		if !ok {
			return "", errors.New(`a file id is "file_" and 1 to 200 of A-Z a-z 0-9 _ -`)
		}
		return id, nil
	})
}

func parsed[T any](parse func(string) (T, error)) kong.Option {
	read := func(c *kong.DecodeContext, to reflect.Value) error {
		var s string
		if err := c.Scan.PopValueInto("id", &s); err != nil {
			return err
		}
		value, err := parse(s)
		if err != nil {
			return err
		}
		to.Set(reflect.ValueOf(value))
		return nil
	}
	return kong.TypeMapper(reflect.TypeFor[T](), kong.MapperFunc(read))
}
