package awsmodel

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// path is a document path: an attribute and members of maps in it.
type path []string

// condition reports whether an item meets it.
type condition func(Item) bool

// holds is true if there is no condition.
func (c condition) holds(i Item) bool { return c == nil || c(i) }

// operand is the value of a part of an expression for an item, nil if there is none.
type operand func(Item) any

// action changes one path. The new value is the sum of the operands. Without operands the
// path is removed.
type action struct {
	path     path
	operands []operand
}

// parser reads one expression by recursive descent: the parts of DynamoDB's grammar that
// the product uses. Its methods panic with the *Error that parse returns.
type parser struct {
	names  map[string]string
	values Item
	text   string
	tokens []string
}

var token = regexp.MustCompile(`[#:]?\w+|<>|<=|>=|\S`)

// parse reads a whole expression of a request. Without a text there is none.
func parse[V any](in input, text *string, read func(*parser) V) (result V, err error) {
	if text == nil {
		return result, nil
	}
	r := &parser{in.ExpressionAttributeNames, in.ExpressionAttributeValues, *text, token.FindAllString(*text, -1)}
	defer func() {
		if failure := recover(); failure != nil {
			err = failure.(*Error) //nolint:errcheck // any other panic is a defect
		}
	}()
	result = read(r)
	if len(r.tokens) > 0 {
		r.fail()
	}
	return result, nil
}

func (r *parser) fail() { panic(notModelled("the expression %q", r.text)) }

// next returns the next token, "" at the end.
func (r *parser) next() string {
	if len(r.tokens) == 0 {
		return ""
	}
	return r.tokens[0]
}

func (r *parser) take() string {
	token := r.next()
	r.expect(token)
	return token
}

// accept reads the token if it is the next one.
func (r *parser) accept(token string) bool {
	if r.next() != token || token == "" {
		return false
	}
	r.tokens = r.tokens[1:]
	return true
}

func (r *parser) expect(token string) {
	if !r.accept(token) {
		r.fail()
	}
}

// list reads one or more, with commas between them.
func list[V any](r *parser, one func() V) []V {
	all := []V{one()}
	for r.accept(",") {
		all = append(all, one())
	}
	return all
}

// condition reads the condition of a write.
func (r *parser) condition() condition {
	holds := r.and()
	for r.accept("OR") {
		left, right := holds, r.and()
		holds = func(i Item) bool { return left(i) || right(i) }
	}
	return holds
}

func (r *parser) and() condition {
	holds := r.not()
	for r.accept("AND") {
		left, right := holds, r.not()
		holds = func(i Item) bool { return left(i) && right(i) }
	}
	return holds
}

func (r *parser) not() condition {
	if r.accept("NOT") {
		holds := r.not()
		return func(i Item) bool { return !holds(i) }
	}
	if !r.accept("(") {
		return r.comparison()
	}
	holds := r.condition()
	r.expect(")")
	return holds
}

var comparators = map[string]func(a, b any) bool{
	"=":  equal,
	"<>": func(a, b any) bool { return !equal(a, b) },
	"<":  ordered(func(order int) bool { return order < 0 }),
	"<=": ordered(func(order int) bool { return order <= 0 }),
	">":  ordered(func(order int) bool { return order > 0 }),
}

// comparison reads a comparison or a function that is a condition by itself.
func (r *parser) comparison() condition {
	if name := r.next(); name == "attribute_exists" || name == "attribute_not_exists" {
		attribute := r.arguments(name, 1)[0]
		return func(i Item) bool { return (attribute(i) != nil) == (name == "attribute_exists") }
	}
	if r.next() == "attribute_type" {
		given := r.arguments("attribute_type", 2)
		return func(i Item) bool {
			value, _ := given[0](i).(object)
			return value[textOf(given[1](i))] != nil
		}
	}
	left := r.operand()
	if r.accept("IN") {
		r.expect("(")
		all := list(r, r.operand)
		r.expect(")")
		return func(i Item) bool {
			return slices.ContainsFunc(all, func(o operand) bool { return equal(left(i), o(i)) })
		}
	}
	compares := comparators[r.take()]
	if compares == nil {
		r.fail()
	}
	right := r.operand()
	return func(i Item) bool { return compares(left(i), right(i)) }
}

// arguments reads a function with so many arguments. The first is a path.
func (r *parser) arguments(function string, count int) []operand {
	r.expect(function)
	r.expect("(")
	all := []operand{r.path().at}
	if r.accept(",") {
		all = append(all, r.operand())
	}
	r.expect(")")
	if len(all) != count {
		r.fail()
	}
	return all
}

// operand reads a path or a value.
func (r *parser) operand() operand {
	if strings.HasPrefix(r.next(), ":") {
		value := r.value()
		return func(Item) any { return value }
	}
	return r.path().at
}

func (r *parser) value() any {
	value, ok := r.values[r.take()]
	if !ok {
		r.fail()
	}
	return value
}

var isName = regexp.MustCompile(`^[A-Za-z]\w*$`)

func (r *parser) path() (p path) {
	for {
		name := r.take()
		if attribute, ok := r.names[name]; ok {
			name = attribute
		} else if !isName.MatchString(name) {
			r.fail()
		}
		p = append(p, name)
		if !r.accept(".") {
			return p
		}
	}
}

func (r *parser) projection() []path { return list(r, r.path) }

// partition reads a key condition: pk = :a, or pk = :a AND begins_with(sk, :b). It returns
// the partition key and the prefix of the sort key.
func (r *parser) partition() (of primaryKey) {
	r.expect("pk")
	r.expect("=")
	of.pk = textOf(r.value())
	if r.accept("AND") {
		for _, token := range []string{"begins_with", "(", "sk", ","} {
			r.expect(token)
		}
		of.sk = textOf(r.value())
		r.expect(")")
	}
	return of
}

// update reads an update expression: a section SET, a section REMOVE, or both.
func (r *parser) update() (actions []action) {
	if r.accept("SET") {
		actions = list(r, r.assignment)
	}
	if r.accept("REMOVE") {
		actions = append(actions, list(r, func() action { return action{path: r.path()} })...)
	}
	return actions
}

// assignment reads an action of SET.
func (r *parser) assignment() action {
	a := action{path: r.path()}
	r.expect("=")
	a.operands = append(a.operands, r.assigned())
	if r.accept("+") {
		a.operands = append(a.operands, r.assigned())
	}
	return a
}

func (r *parser) assigned() operand {
	if r.next() != "if_not_exists" {
		return r.operand()
	}
	arguments := r.arguments("if_not_exists", 2)
	return func(old Item) any {
		if v := arguments[0](old); v != nil {
			return v
		}
		return arguments[1](old)
	}
}

// at returns the value at a path, nil if there is none.
func (p path) at(i Item) any {
	for ; len(p) > 1; p = p[1:] {
		i, _ = inside[Item](i[p[0]], "M") // a nil map has no attribute
	}
	return i[p[0]]
}

// put sets the value at a path, or removes it if v is nil. It copies the maps on the way.
// If one does not exist, put makes it or returns false.
func (p path) put(i Item, v any, makes bool) bool {
	for ; len(p) > 1; p = p[1:] {
		inner, ok := inside[Item](i[p[0]], "M")
		if !ok && !makes {
			return false
		}
		copied := Item{}
		maps.Copy(copied, inner)
		i[p[0]] = object{"M": copied}
		i = copied
	}
	if v == nil {
		delete(i, p[0])
	} else {
		i[p[0]] = v
	}
	return true
}

// project returns the parts of the item at the paths. Without paths it is the item.
func project(i Item, paths []path) Item {
	if paths == nil {
		return i
	}
	out := Item{}
	for _, p := range paths {
		if v := p.at(i); v != nil {
			p.put(out, v, true)
		}
	}
	return out
}

// apply returns the item after the actions. Each sees the item as it was before.
func apply(actions []action, old Item) (Item, error) {
	out := maps.Clone(old)
	for _, a := range actions {
		v, err := a.value(old)
		if err != nil {
			return nil, err
		}
		if !a.path.put(out, v, false) {
			return nil, invalid("The document path provided in the update expression is invalid for update")
		}
	}
	return out, nil
}

// value returns the new value, nil for none.
func (a action) value(old Item) (any, error) {
	var values []any
	for _, o := range a.operands {
		values = append(values, o(old))
	}
	switch {
	case len(values) == 0:
		return nil, nil
	case slices.Contains(values, nil):
		return nil, invalid("The provided expression refers to an attribute that does not exist in the item")
	case len(values) == 1:
		return values[0], nil
	}
	total := int64(0)
	for _, v := range values {
		n, ok := integer(v)
		if !ok {
			return nil, invalid("An operand in the update expression has an incorrect data type")
		}
		total += n
	}
	return object{"N": fmt.Sprint(total)}, nil
}
