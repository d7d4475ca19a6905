package main

import "testing"

func TestMatches(t *testing.T) {
	const etag = `"abc"`
	yes := map[string][]string{
		"the tag":          {`"abc"`},
		"weak":             {`W/"abc"`},
		"any":              {`*`},
		"any with spaces":  {" *\t"},
		"in a list":        {`"x", "abc","y"`},
		"empty elements":   {`, ,"abc",,`},
		"second header":    {`"x"`, `W/"abc"`},
		"comma in another": {`"a,b", "abc"`},
		"space all round":  {"\t\"x\" \t,\t \"abc\" "},
	}
	for name, headers := range yes {
		if !matches(headers, etag) {
			t.Errorf("%s: %q does not match", name, headers)
		}
	}
	no := map[string][]string{
		"no header":       nil,
		"empty":           {""},
		"another":         {`"abd"`},
		"unquoted":        {`abc`},
		"half quoted":     {`"abc`},
		"followed by":     {`"abc"x`},
		"two in one":      {`"abc" "abc"`},
		"nonsense before": {`x, "abc"`},
		"nonsense after":  {`"abc", x`},
		"any in a list":   {`*, "abc"`},
		"lower-case weak": {`w/"abc"`},
		"space inside":    {`"x y", "abc"`},
		"prefix":          {`"ab"`},
		"quote missing":   {`x","abc"`},
		"half quoted end": {`"abc", "`},
		"weak nothing":    {`W/`},
		"control inside":  {"\"x\x7fy\", \"abc\""},
	}
	for name, headers := range no {
		if matches(headers, etag) {
			t.Errorf("%s: %q matches", name, headers)
		}
	}
}
