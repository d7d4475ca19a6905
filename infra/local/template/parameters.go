package template

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// parameter is one declared parameter, with the checks that template.yaml uses.
type parameter struct {
	Type           string   `yaml:"Type"`
	Default        *string  `yaml:"Default"`
	AllowedPattern string   `yaml:"AllowedPattern"`
	AllowedValues  []string `yaml:"AllowedValues"`
	MinValue       *float64 `yaml:"MinValue"`
	MaxValue       *float64 `yaml:"MaxValue"`
}

// parameterValues returns the value of each declared parameter. Its error names
// every parameter at fault.
func parameterValues(declared *yaml.Node, overrides map[string]string) (map[string]string, error) {
	values := make(map[string]string)
	var problems []error
	for name, node := range members(declared) {
		var p parameter
		if err := node.Decode(&p); err != nil {
			return nil, fmt.Errorf("parameter %s: %w", name, err)
		}
		text, given := overrides[name]
		if !given && p.Default == nil {
			problems = append(problems, fmt.Errorf("parameter %s needs a value", name))
			continue
		}
		if !given {
			text = *p.Default
		}
		if err := p.check(text); err != nil {
			problems = append(problems, fmt.Errorf("parameter %s: %w", name, err))
			continue
		}
		values[name] = text
	}
	for _, name := range slices.Sorted(maps.Keys(overrides)) {
		if member(declared, name) == nil {
			problems = append(problems, fmt.Errorf("the template has no parameter %s", name))
		}
	}
	return values, errors.Join(problems...)
}

func (p parameter) check(text string) error {
	if len(p.AllowedValues) > 0 && !slices.Contains(p.AllowedValues, text) {
		return fmt.Errorf("%q is none of %s", text, strings.Join(p.AllowedValues, ", "))
	}
	if p.AllowedPattern != "" {
		// CloudFormation matches the whole value.
		pattern, err := regexp.Compile(`^(?:` + p.AllowedPattern + `)$`)
		if err != nil {
			return fmt.Errorf("its AllowedPattern cannot be read here: %w", err)
		}
		if !pattern.MatchString(text) {
			return fmt.Errorf("%q does not match %s", text, p.AllowedPattern)
		}
	}
	if p.Type != "Number" {
		return nil
	}
	number, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil:
		return fmt.Errorf("%q is not a number", text)
	case p.MinValue != nil && number < *p.MinValue:
		return fmt.Errorf("%s is less than %v", text, *p.MinValue)
	case p.MaxValue != nil && number > *p.MaxValue:
		return fmt.Errorf("%s is more than %v", text, *p.MaxValue)
	}
	return nil
}
