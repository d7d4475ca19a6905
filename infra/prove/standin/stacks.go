package standin

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	deleteComplete = "DELETE_COMPLETE"
	deleteSkipped  = "DELETE_SKIPPED"
	architectures  = "Architecture"
)

// stack is a CloudFormation stack.
type stack struct {
	name, id, status string
	tags, parameters map[string]string
	review           map[string]string // tags of its change set
	resources        []*resource
	deployment       *deployment
	version          int
}

type resource struct{ id, kind, physical, status, policy string }

// own is the name that the engines have for a resource, "" if it is not theirs.
func (d *deployment) own(id string) string {
	_, key, _ := strings.Cut(d.outputs[id+"Arn"], ":key/")
	return cmp.Or(d.outputs[id+"Name"], key)
}

func (st *stack) outputs() map[string]string {
	if st.deployment == nil {
		return nil
	}
	all := maps.Clone(st.deployment.outputs)
	for _, r := range st.resources {
		switch r.id {
		case "AlarmTopic":
			all["AlarmTopicArn"] = r.physical
		}
	}
	return all
}

// Sam is the SAM CLI of the dry run: it passes its arguments on to the stand-in that plays
// CloudFormation, and returns the exit code.
func Sam(endpoint string, args []string) int {
	folder, err := os.Getwd()
	if err == nil {
		var body []byte
		if body, err = json.Marshal(map[string]any{"folder": folder, "args": args}); err == nil {
			var answer *http.Response
			if answer, err = http.Post(endpoint+commandPath, "application/json", bytes.NewReader(body)); err == nil {
				defer func() { _ = answer.Body.Close() }()
				_, err = os.Stderr.ReadFrom(answer.Body)
				if err == nil && answer.StatusCode == http.StatusOK {
					return 0
				}
			}
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "sam:", err)
	}
	return 1
}

// arguments are the command line of sam: options by name, with all their values.
func arguments(args []string) (command string, options map[string][]string) {
	options = map[string][]string{}
	name := ""
	for i, a := range args {
		switch {
		case i == 0:
			command = a
		case strings.HasPrefix(a, "--"):
			name = a
			options[name] = []string{}
		default:
			options[name] = append(options[name], a)
		}
	}
	return command, options
}

func pairs(list []string) map[string]string {
	m := map[string]string{}
	for _, p := range list {
		name, value, _ := strings.Cut(p, "=")
		m[name] = value
	}
	return m
}

// sam runs a command of the SAM CLI.
func (s *StandIn) sam(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Folder string
		Args   []string
	}
	err := json.Unmarshal(readAll(r), &in)
	if err == nil {
		command, options := arguments(in.Args)
		switch command {
		case "build":
			err = s.build(in.Folder, options)
		case "deploy":
			err = s.deploy(r.Context(), options)
		default:
			err = errors.New("the stand-in plays sam build and sam deploy")
		}
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusConflict)
	}
}

// build copies the template and the functions of this machine, whatever architecture
// is asked for.
func (s *StandIn) build(folder string, options map[string][]string) error {
	to := options["--build-dir"][0]
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	if err := os.CopyFS(to, os.DirFS(filepath.Join(s.root, ".build", "functions"))); err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(folder, options["--template"][0])) //nolint:gosec // a test on this machine
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(to, "template.yaml"), text, 0o600) //nolint:gosec // a test on this machine
}

// deploy creates or updates a stack.
func (s *StandIn) deploy(ctx context.Context, options map[string][]string) error {
	for _, required := range []string{"--stack-name", "--template-file", "--s3-bucket", "--capabilities", "--tags", "--parameter-overrides"} {
		if len(options[required]) == 0 {
			return fmt.Errorf("no %s", required)
		}
	}
	name, file, bucket := options["--stack-name"][0], options["--template-file"][0], options["--s3-bucket"][0]
	text, err := os.ReadFile(file) //nolint:gosec // a test on this machine
	if err != nil {
		return err
	}
	parameters := pairs(options["--parameter-overrides"])
	s.mu.Lock()
	if _, ok := s.buckets[bucket]; !ok {
		s.mu.Unlock()
		return errors.New("no bucket " + bucket)
	}
	s.buckets[bucket] = append(s.buckets[bucket], name+"/template")
	s.mu.Unlock()
	if strings.Contains(string(text), "\n  ProveFailure:") {
		return s.fail(s.create(name, parameters, pairs(options["--tags"]), nil))
	}
	d, err := s.deployed(ctx, parameters)
	if err != nil {
		return err
	}
	st := s.live(name)
	if st == nil {
		s.create(name, parameters, pairs(options["--tags"]), d)
		return nil
	}
	binary, err := os.ReadFile(filepath.Join(filepath.Dir(file), "GetSyncJobFunction", "bootstrap"))
	if err != nil {
		return err
	}
	if good, err := os.ReadFile(filepath.Join(s.root, ".build", "functions", "GetSyncJobFunction", "bootstrap")); err != nil || !bytes.Equal(good, binary) {
		return errors.Join(err, s.canary(ctx, st, filepath.Dir(file)))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	st.parameters, st.deployment, st.status = parameters, d, "UPDATE_COMPLETE"
	st.version++
	for _, r := range st.resources { // the engines' own names
		if own := d.own(r.id); own != "" {
			delete(s.tables, r.physical)
			delete(s.keys, r.physical)
			delete(s.buckets, r.physical)
			r.physical = own
			s.adopt(r)
		}
	}
	return nil
}

// live is the stack of a name that is not deleted.
func (s *StandIn) live(name string) *stack {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, st := range s.stacks {
		if st.name == name && st.status != deleteComplete {
			return st
		}
	}
	return nil
}

// create makes a stack with all resources whose condition holds.
func (s *StandIn) create(name string, parameters, tags map[string]string, d *deployment) *stack {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := fmt.Sprintf("arn:aws:cloudformation:%s:%s:stack/%s/%d", Region, Account, name, len(s.stacks))
	st := &stack{name: name, id: id, status: "CREATE_COMPLETE", tags: tags, parameters: parameters, deployment: d, version: 1}
	for _, r := range s.resources {
		if r.condition != "" && (r.condition != "CreatesGatewayLoggingRole" || parameters["GatewayLoggingRole"] != "Create") {
			continue
		}
		made := &resource{
			id: r.id, kind: strings.Replace(r.kind, "Serverless::Function", "Lambda::Function", 1), status: "CREATE_COMPLETE", policy: r.policy,
			physical: fmt.Sprintf("%s-%s-%d", name, r.id, len(s.stacks)),
		}
		switch r.kind {
		case "AWS::S3::Bucket":
			made.physical = strings.ToLower(made.physical)
		case "AWS::SNS::Topic":
			made.physical = fmt.Sprintf("arn:aws:sns:%s:%s:%s", Region, Account, made.physical)
		}
		if d != nil {
			if own := d.own(r.id); own != "" {
				made.physical = own
			}
		}
		s.adopt(made)
		st.resources = append(st.resources, made)
	}
	s.stacks = append(s.stacks, st)
	return st
}

// adopt makes what stands behind a resource. The caller holds the lock.
func (s *StandIn) adopt(r *resource) {
	switch r.kind {
	case "AWS::DynamoDB::Table":
		s.tables[r.physical] = &table{protected: r.policy == "Retain"}
	case "AWS::KMS::Key":
		s.keys[r.physical] = &key{state: "Enabled"}
	case "AWS::S3::Bucket":
		if _, ok := s.buckets[r.physical]; !ok {
			s.buckets[r.physical] = nil
		}
	case "AWS::Logs::LogGroup":
		s.groups[r.physical] = strings.TrimSuffix(r.id, "LogGroup")
	case "AWS::IAM::Role":
		if r.id == "GatewayLoggingRoleForRegion" {
			s.roles[r.physical], s.role = true, roleARN(r.physical)
		}
	}
}

func roleARN(name string) string { return "arn:aws:iam::" + Account + ":role/" + name }

// fail rolls a creation back as CloudFormation does.
func (s *StandIn) fail(st *stack) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	st.status = "ROLLBACK_COMPLETE"
	if s.wrong["rollback-failed"] {
		st.status = "ROLLBACK_FAILED"
	}
	for _, r := range st.resources {
		keep := r.policy == "Retain" || s.wrong["rollback-left-bucket"] && r.id == "FilesBucket"
		s.discard(r, keep)
		if r.kind == "AWS::KMS::Key" {
			s.keys[r.physical] = &key{"PendingDeletion", time.Now().AddDate(0, 0, 30)}
		}
	}
	return errors.New("failed to create the stack " + st.name)
}

// discard deletes a resource of a stack that goes, or keeps it. The caller holds the
// lock.
func (s *StandIn) discard(r *resource, keep bool) {
	if keep {
		r.status = deleteSkipped
		return
	}
	r.status = deleteComplete
	switch r.kind {
	case "AWS::DynamoDB::Table":
		s.tables[r.physical].deleted = true
	case "AWS::S3::Bucket":
		delete(s.buckets, r.physical)
	case "AWS::Logs::LogGroup":
		delete(s.groups, r.physical)
	}
}

// delete deletes a stack, and keeps what its resources' policies say.
func (s *StandIn) delete(st *stack) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st.status = deleteComplete
	for _, r := range st.resources {
		if r.status != deleteComplete && r.status != deleteSkipped {
			s.discard(r, strings.HasPrefix(r.policy, "Retain"))
		}
	}
}

// Left lists what a customer would still pay for: everything but keys that wait for
// their deletion.
func (s *StandIn) Left() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var left []string
	add := func(what, name string) { left = append(left, what+" "+name) }
	for _, st := range s.stacks {
		if st.status != deleteComplete {
			add("stack", st.name)
		}
	}
	for name, t := range s.tables {
		if !t.deleted {
			add("table", name)
		}
	}
	for name, k := range s.keys {
		if k.state != "PendingDeletion" {
			add("key", name)
		}
	}
	for name := range s.buckets {
		add("bucket", name)
	}
	for name := range s.groups {
		add("log group", name)
	}
	for name := range s.roles {
		add("role", name)
	}
	for name := range s.queues {
		add("queue", name)
	}
	if s.role != "" && len(s.roles) > 0 {
		add("logging role", s.role)
	}
	return left
}

// Foreign makes a stack that prove did not make.
func (s *StandIn) Foreign(name string) { s.create(name, nil, nil, nil) }

// Others makes the bucket and the queue of a name, which prove did not make.
func (s *StandIn) Others(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.buckets[name+"-"+Account+"-"+Region], s.queues[name+"-prove"] = []string{"of others"}, nil
}

// Reviewed makes what sam deploy leaves that is ended before it executes its change
// set: a stack without resources and tags.
func (s *StandIn) Reviewed(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stacks = append(s.stacks, &stack{name: name, id: "arn:review/" + name, status: "REVIEW_IN_PROGRESS", review: map[string]string{"signalbox:prove": "x"}})
}

// Live deploys a stack with the template's limiter, that prove-clean may remove.
func (s *StandIn) Live(ctx context.Context, name string) error {
	parameters := map[string]string{architectures: "arm64", "DeleteRatePerMinute": "60", "DeleteBurst": "20"}
	d, err := s.deployed(ctx, parameters)
	if err != nil {
		return err
	}
	s.create(name, parameters, map[string]string{"signalbox:prove": "live"}, d)
	return nil
}
