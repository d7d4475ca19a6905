package model

import (
	_ "embed"
	"fmt"
	"maps"
	"math/big"
	"regexp"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// reserved are DynamoDB's reserved words: ReservedWords.html of its developer guide.
//
//go:embed reserved.txt
var reservedList string

var reserved = strings.Fields(reservedList)

// placeholders are the names and values for all expressions in a request.
type placeholders struct {
	names      map[string]string
	values     Item
	used       map[string]bool
	expression bool // there is one
}

// check refuses placeholders that no expression uses. It comes after the expressions.
func (p *placeholders) check() error {
	for member, keys := range map[string][]string{
		"ExpressionAttributeNames": slices.Collect(maps.Keys(p.names)), "ExpressionAttributeValues": slices.Collect(maps.Keys(p.values)),
	} {
		unused := slices.DeleteFunc(keys, func(key string) bool { return p.used[key] })
		if len(unused) > 0 {
			return invalid("Value provided in %s unused in expressions: keys: {%s}", member, strings.Join(unused, ", "))
		}
	}
	if !p.expression && (p.names != nil || p.values != nil) || p.names != nil && len(p.names) == 0 || p.values != nil && len(p.values) == 0 {
		return invalid("ExpressionAttributeNames and ExpressionAttributeValues must not be empty, and need an expression")
	}
	return nil
}

// path is a document path: an attribute and members of maps in it.
type path []string

// node is an expression. Its operator is "path", "value", a comparator, AND, OR, NOT,
// IN, "+" or a function.
type node struct {
	operator string
	operands []*node
	path     path
	value    types.AttributeValue
	wrapped  bool // in parentheses
}

// parser reads one expression by recursive descent. Its methods panic with the *Error
// that parse returns.
type parser struct {
	*placeholders

	kind   string // such as ConditionExpression
	tokens []string
}

var token = regexp.MustCompile(`[#:]?\w+|<>|<=|>=|\S`)

// parse reads a whole expression. Without a text there is none.
func parse[V any](kind string, text *string, p *placeholders, read func(*parser) V) (result V, err error) {
	if text == nil {
		return result, nil
	}
	p.expression = true
	r := &parser{p, kind, token.FindAllString(*text, -1)}
	defer func() {
		if failure := recover(); failure != nil {
			err = failure.(*Error) //nolint:errcheck,forcetypeassert // any other panic is a defect
		}
	}()
	result = read(r)
	if len(r.tokens) > 0 {
		r.unexpected()
	}
	return result, nil
}

func (r *parser) fail(format string, args ...any) {
	panic(invalid("Invalid %s: %s", r.kind, fmt.Sprintf(format, args...)))
}

func (r *parser) lack(what string) { panic(notModelled("%s in a %s", what, r.kind)) }

// unexpected fails at the next token.
func (r *parser) unexpected() { r.fail("Syntax error; token: %q", r.next()) }

// next returns the next token, "" at the end.
func (r *parser) next() string {
	if len(r.tokens) == 0 {
		return ""
	}
	return r.tokens[0]
}

// accept reads the token if it is the next one. Keywords are in upper or lower case.
func (r *parser) accept(token string) bool {
	if !strings.EqualFold(r.next(), token) {
		return false
	}
	r.tokens = r.tokens[1:]
	return true
}

func (r *parser) expect(token string) {
	if !r.accept(token) {
		r.unexpected()
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

// condition reads a key condition, a filter or the condition of a write.
func (r *parser) condition() *node {
	n := r.and()
	for r.accept("OR") {
		n = &node{operator: "OR", operands: []*node{n, r.and()}}
	}
	return n
}

func (r *parser) and() *node {
	n := r.not()
	for r.accept("AND") {
		n = &node{operator: "AND", operands: []*node{n, r.not()}}
	}
	return n
}

func (r *parser) not() *node {
	if r.accept("NOT") {
		return &node{operator: "NOT", operands: []*node{r.not()}}
	}
	if !r.accept("(") {
		return r.comparison()
	}
	n := r.condition()
	r.expect(")")
	if n.wrapped {
		r.fail("The expression has redundant parentheses;")
	}
	n.wrapped = true
	return n
}

// comparison reads a comparison or a function that is a condition by itself.
func (r *parser) comparison() *node {
	left := r.operand()
	switch left.operator {
	case "attribute_exists", "attribute_not_exists", "begins_with":
		return left
	case "if_not_exists":
		r.fail("The function is not allowed in a condition expression; function: if_not_exists")
	}
	n := &node{operator: strings.ToUpper(r.next()), operands: []*node{left}}
	switch n.operator {
	case "=", "<>", "<", "<=", ">", ">=":
		r.expect(n.operator)
		n.operands = append(n.operands, r.operand())
	case "IN":
		r.expect("IN")
		r.expect("(")
		n.operands = append(n.operands, list(r, r.operand)...)
		r.expect(")")
	case "BETWEEN":
		r.lack(n.operator)
	default:
		r.unexpected()
	}
	for _, o := range n.operands[1:] {
		if strings.ContainsAny(n.operator, "<>") && n.operator != "<>" && o.operator == "value" {
			r.requireType(n.operator, o, "S", "N")
		}
		if o.operator == "path" && slices.Equal(o.path, left.path) {
			r.fail("The first operand must be distinct from the remaining operands for this operator or function; operator: %s", n.operator)
		}
	}
	return n
}

// requireType refuses a value if its type is not one of these.
func (r *parser) requireType(operator string, operand *node, wanted ...string) {
	if got := typeOf(operand.value); operand.operator == "value" && !slices.Contains(wanted, got) {
		r.fail("Incorrect operand type for operator or function; operator or function: %s, operand type: %s", operator, got)
	}
}

// operand reads a path, a value or a function.
func (r *parser) operand() *node {
	name := r.next()
	switch {
	case strings.HasPrefix(name, ":"):
		v, ok := r.values[name]
		if !ok {
			r.fail("An expression attribute value used in expression is not defined; attribute value: %s", name)
		}
		r.used[name] = true
		r.expect(name)
		return &node{operator: "value", value: v}
	case len(r.tokens) > 1 && r.tokens[1] == "(" && isName.MatchString(name):
		return r.function()
	}
	return &node{operator: "path", path: r.path()}
}

// arguments are the functions of the model and the numbers of their operands.
var arguments = map[string]int{"attribute_exists": 1, "attribute_not_exists": 1, "begins_with": 2, "if_not_exists": 2}

func (r *parser) function() *node {
	name := r.next()
	if slices.Contains([]string{"attribute_type", "contains", "size", "list_append"}, name) {
		r.lack("the function " + name)
	}
	r.tokens = r.tokens[2:]
	n := &node{operator: name, operands: list(r, r.operand)}
	r.expect(")")
	switch want, known := arguments[name]; {
	case !known:
		r.fail("Invalid function name; function: %s", name)
	case len(n.operands) != want:
		r.fail("Incorrect number of operands for operator or function; operator or function: %s, number of operands: %d", name, len(n.operands))
	case n.operands[0].operator != "path":
		r.fail("Operator or function requires a document path; operator or function: %s", name)
	case name == "begins_with":
		r.requireType(name, n.operands[1], "S")
	}
	return n
}

var isName = regexp.MustCompile(`^[A-Za-z]\w*$`)

// path reads a document path.
func (r *parser) path() (p path) {
	for {
		name := r.next()
		if strings.HasPrefix(name, "#") {
			attribute, ok := r.names[name]
			if !ok {
				r.fail("An expression attribute name used in the document path is not defined; attribute name: %s", name)
			}
			r.used[name] = true
			p = append(p, attribute)
		} else {
			if !isName.MatchString(name) {
				r.unexpected()
			}
			if slices.Contains(reserved, strings.ToUpper(name)) {
				r.fail("Attribute name is a reserved keyword; reserved keyword: %s", name)
			}
			p = append(p, name)
		}
		r.expect(name)
		if r.next() == "[" {
			r.lack("an element of a list")
		}
		if !r.accept(".") {
			return p
		}
	}
}

// projection reads the paths of a projection.
func (r *parser) projection() []path {
	paths := list(r, r.path)
	r.distinct(paths)
	return paths
}

// distinct refuses two paths if one contains the other.
func (r *parser) distinct(paths []path) {
	for i, a := range paths {
		for _, b := range paths[:i] {
			if shorter := min(len(a), len(b)); slices.Equal(a[:shorter], b[:shorter]) {
				r.fail("Two document paths overlap with each other; must remove or rewrite one of these paths; path one: %s, path two: %s", b, a)
			}
		}
	}
}

// action is one path of an update. Without a value it is removed.
type action struct {
	path path
	set  *node
}

// update reads an update expression: a section SET, a section REMOVE, or both.
func (r *parser) update() (actions []action) {
	sections := map[string]bool{}
	for len(r.tokens) > 0 || len(actions) == 0 {
		section := strings.ToUpper(r.next())
		if sections[section] {
			r.fail("The %q section can only be used once in an update expression;", section)
		}
		sections[section] = true
		switch section {
		case "SET":
			r.expect(section)
			actions = append(actions, list(r, r.assignment)...)
		case "REMOVE":
			r.expect(section)
			actions = append(actions, list(r, func() action { return action{path: r.path()} })...)
		case "ADD", "DELETE", "-":
			r.lack(section)
		default:
			r.unexpected()
		}
	}
	r.distinct(pathsOf(actions))
	return actions
}

func pathsOf(actions []action) (paths []path) {
	for _, a := range actions {
		paths = append(paths, a.path)
	}
	return paths
}

// assignment reads an action of SET.
func (r *parser) assignment() action {
	a := action{path: r.path()}
	r.expect("=")
	a.set = r.term()
	if r.accept("+") {
		a.set = &node{operator: "+", operands: []*node{a.set, r.term()}}
		for _, o := range a.set.operands {
			for _, v := range append(o.operands, o) {
				r.requireType("+", v, "N")
			}
		}
	}
	return a
}

// term reads an operand of SET.
func (r *parser) term() *node {
	n := r.operand()
	if n.operator != "path" && n.operator != "value" && n.operator != "if_not_exists" {
		r.fail("The function is not allowed in an update expression; function: %s", n.operator)
	}
	return n
}

// at returns the value at a path, nil if there is none.
func (p path) at(i Item) types.AttributeValue {
	for ; len(p) > 1; p = p[1:] {
		m, ok := i[p[0]].(*types.AttributeValueMemberM)
		if !ok {
			return nil
		}
		i = m.Value
	}
	return i[p[0]]
}

// valueIn returns the value of an operand for the item, nil if there is none.
func (n *node) valueIn(i Item) types.AttributeValue {
	if n.operator == "value" {
		return n.value
	}
	return n.path.at(i)
}

// holds reports whether the condition holds for the item. No condition always does.
func (n *node) holds(i Item) bool {
	if n == nil {
		return true
	}
	switch n.operator {
	case "AND":
		return n.operands[0].holds(i) && n.operands[1].holds(i)
	case "OR":
		return n.operands[0].holds(i) || n.operands[1].holds(i)
	case "NOT":
		return !n.operands[0].holds(i)
	}
	left := n.operands[0].valueIn(i)
	switch n.operator {
	case "attribute_exists":
		return left != nil
	case "attribute_not_exists":
		return left == nil
	case "IN":
		return slices.ContainsFunc(n.operands[1:], func(o *node) bool { return equal(left, o.valueIn(i)) })
	}
	right := n.operands[1].valueIn(i)
	order, ordered := compare(left, right)
	switch n.operator {
	case "begins_with":
		return typeOf(left) == "S" && typeOf(right) == "S" && strings.HasPrefix(textOf(left), textOf(right))
	case "=":
		return equal(left, right)
	case "<>":
		return !equal(left, right)
	case "<":
		return ordered && order < 0
	case "<=":
		return ordered && order <= 0
	case ">":
		return ordered && order > 0
	}
	return ordered && order >= 0
}

// project returns the parts of the item at the paths. Without paths it is the item.
func project(i Item, paths []path) Item {
	if paths == nil || i == nil {
		return i
	}
	out := Item{}
	for _, p := range paths {
		if v := p.at(i); v != nil {
			place(out, p, v)
		}
	}
	return out
}

// place puts a value at a path into an item that shares no map with another.
func place(i Item, p path, v types.AttributeValue) {
	for ; len(p) > 1; p = p[1:] {
		m, ok := i[p[0]].(*types.AttributeValueMemberM)
		if !ok {
			m = &types.AttributeValueMemberM{Value: Item{}}
			i[p[0]] = m
		}
		i = m.Value
	}
	i[p[0]] = v
}

// apply returns the item after the actions. Each sees the item as it was before.
func apply(actions []action, old Item) (Item, error) {
	out := maps.Clone(old)
	for _, a := range actions {
		var v types.AttributeValue
		if a.set != nil {
			var err error
			if v, err = a.set.assigned(old); err != nil {
				return nil, err
			}
		}
		if err := change(out, a.path, v); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// change sets the value at a path, or removes it if v is nil. It copies the maps on the
// way. Each must exist.
func change(i Item, p path, v types.AttributeValue) error {
	for ; len(p) > 1; p = p[1:] {
		m, ok := i[p[0]].(*types.AttributeValueMemberM)
		if !ok {
			return invalid("The document path provided in the update expression is invalid for update")
		}
		inner := maps.Clone(m.Value)
		i[p[0]] = &types.AttributeValueMemberM{Value: inner}
		i = inner
	}
	if v == nil {
		delete(i, p[0])
	} else {
		i[p[0]] = v
	}
	return nil
}

// assigned returns the value that SET assigns.
func (n *node) assigned(old Item) (types.AttributeValue, error) {
	switch n.operator {
	case "if_not_exists":
		if v := n.operands[0].valueIn(old); v != nil {
			return v, nil
		}
		return n.operands[1].assigned(old)
	case "+":
		return n.sum(old)
	}
	v := n.valueIn(old)
	if v == nil {
		return nil, invalid("The provided expression refers to an attribute that does not exist in the item")
	}
	return v, nil
}

func (n *node) sum(old Item) (types.AttributeValue, error) {
	total := new(big.Int)
	for _, o := range n.operands {
		v, err := o.assigned(old)
		if err != nil {
			return nil, err
		}
		number, ok := v.(*types.AttributeValueMemberN)
		if !ok {
			return nil, invalid("An operand in the update expression has an incorrect data type")
		}
		total.Add(total, integer(number))
	}
	sum := &types.AttributeValueMemberN{Value: total.String()}
	return sum, check(sum)
}
