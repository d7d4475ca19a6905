package main

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

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

// lifetime is how long something lasts, longer than no time.
type lifetime time.Duration

// parseLifetime reads whole days, such as 90d, or what time.ParseDuration reads.
func parseLifetime(s string) (lifetime, error) {
	d, err := time.ParseDuration(s)
	if days, ok := strings.CutSuffix(s, "d"); ok {
		var n int64
		n, err = strconv.ParseInt(days, 10, 32)
		d = time.Duration(max(0, min(n, maxDays+1))) * 24 * time.Hour
	}
	if err != nil {
		return 0, fmt.Errorf("%q is not a duration: give days (90d), hours (36h) or minutes (45m)", s)
	}
	switch {
	case d <= 0:
		return 0, errExpiresInAgo
	case d > maxDays*24*time.Hour:
		return 0, fmt.Errorf("a key lasts at most %dd: leave --expires-in out for one that never expires", maxDays)
	}
	return lifetime(d), nil
}

// maxDays is about a hundred years.
const maxDays = 36500

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
