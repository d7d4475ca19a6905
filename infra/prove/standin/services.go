package standin

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/smithy-go/encoding/cbor"
)

// element is text for an XML document.
func element(name, text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a Builder takes everything
	return "<" + name + ">" + b.String() + "</" + name + ">"
}

func list(name string, members ...string) string {
	var b strings.Builder
	for _, m := range members {
		b.WriteString("<member>" + m + "</member>")
	}
	return "<" + name + ">" + b.String() + "</" + name + ">"
}

// queryError is how the XML services refuse.
func queryError(w http.ResponseWriter, status int, code, message string) {
	w.WriteHeader(status)
	_, _ = io.WriteString(w, "<ErrorResponse><Error>"+element("Code", code)+element("Message", message)+"</Error></ErrorResponse>")
}

// query plays the services that speak AWS's query protocol.
func (s *StandIn) query(service string, w http.ResponseWriter, r *http.Request) {
	in, err := url.ParseQuery(string(readAll(r)))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	action := in.Get("Action")
	var answer string
	switch service + " " + action {
	case "sts GetCallerIdentity":
		answer = element("Account", Account) + element("Arn", "arn:aws:iam::"+Account+":user/dry-run") + element("UserId", "dry-run")
	case "cloudformation DescribeStacks":
		st := s.find(in.Get("StackName"))
		if st == nil {
			queryError(w, http.StatusBadRequest, "ValidationError", "Stack with id "+in.Get("StackName")+" does not exist")
			return
		}
		answer = list("Stacks", s.describe(st))
	case "cloudformation ListStacks":
		var all []string
		s.mu.Lock()
		for _, st := range s.stacks {
			all = append(all, element("StackId", st.id)+element("StackName", st.name)+element("StackStatus", st.status)+created)
		}
		s.mu.Unlock()
		answer = list("StackSummaries", all...)
	case "cloudformation ListStackResources":
		var all []string
		if st := s.find(in.Get("StackName")); st != nil {
			s.mu.Lock()
			for _, r := range st.resources {
				all = append(all, element("LogicalResourceId", r.id)+element("PhysicalResourceId", r.physical)+element("ResourceType", r.kind)+
					element("ResourceStatus", r.status)+"<LastUpdatedTimestamp>2026-01-01T00:00:00Z</LastUpdatedTimestamp>")
			}
			s.mu.Unlock()
		}
		answer = list("StackResourceSummaries", all...)
	case "cloudformation ListChangeSets":
		answer = list("Summaries", element("ChangeSetId", in.Get("StackName")))
	case "cloudformation DescribeChangeSet":
		answer = named("Tags", "Key", "Value", s.find(in.Get("ChangeSetName")).review)
	case "cloudformation DeleteStack":
		if st := s.find(in.Get("StackName")); st != nil {
			s.delete(st)
		}
	case "sns Subscribe":
		s.mu.Lock()
		s.heard[in.Get("TopicArn")] = in.Get("Endpoint")[strings.LastIndex(in.Get("Endpoint"), ":")+1:]
		s.mu.Unlock()
		answer = element("SubscriptionArn", in.Get("TopicArn")+":1")
	case "iam GetRole":
		name := in.Get("RoleName")
		s.mu.Lock()
		there := s.roles[name]
		s.mu.Unlock()
		if !there {
			queryError(w, http.StatusNotFound, "NoSuchEntity", "no such role")
			return
		}
		answer = "<Role>" + element("Arn", roleARN(name)) + element("RoleName", name) + element("RoleId", "1") + element("Path", "/") +
			"<CreateDate>2026-01-01T00:00:00Z</CreateDate></Role>"
	case "iam ListAttachedRolePolicies":
		answer = list("AttachedPolicies", element("PolicyArn", "arn:aws:iam::aws:policy/service-role/AmazonAPIGatewayPushToCloudWatchLogs")) +
			element("IsTruncated", "false")
	case "iam DetachRolePolicy":
	case "iam DeleteRole":
		s.mu.Lock()
		delete(s.roles, in.Get("RoleName"))
		s.mu.Unlock()
	default:
		s.unknown(w, service+" "+action)
		return
	}
	w.Header().Set("Content-Type", "text/xml")
	_, _ = fmt.Fprintf(w, "<%sResponse><%sResult>%s</%sResult></%sResponse>", action, action, answer, action, action)
}

const created = "<CreationTime>2026-01-01T00:00:00Z</CreationTime>"

// find finds a stack by id, or one that is not deleted by name.
func (s *StandIn) find(name string) *stack {
	s.mu.Lock()
	for _, st := range s.stacks {
		if st.id == name {
			s.mu.Unlock()
			return st
		}
	}
	s.mu.Unlock()
	return s.live(name)
}

func (s *StandIn) describe(st *stack) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return element("StackId", st.id) + element("StackName", st.name) + element("StackStatus", st.status) + created +
		named("Tags", "Key", "Value", st.tags) + named("Parameters", "ParameterKey", "ParameterValue", st.parameters) +
		named("Outputs", "OutputKey", "OutputValue", st.outputs())
}

// named is a list of pairs.
func named(name, key, value string, m map[string]string) string {
	var all []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		all = append(all, element(key, k)+element(value, m[k]))
	}
	return list(name, all...)
}

// jsonError is how the JSON services refuse.
func jsonError(w http.ResponseWriter, status int, code string) {
	w.Header().Set("X-Amzn-Errortype", code)
	sendJSON(w, status, map[string]string{"__type": code, "message": code})
}

func writeJSON(w http.ResponseWriter, answer any) { sendJSON(w, http.StatusOK, answer) }

func sendJSON(w http.ResponseWriter, status int, answer any) {
	text, _ := json.Marshal(answer) // texts, numbers and maps
	w.Header().Set("Content-Type", "application/x-amz-json-1.1")
	w.Header().Set("X-Amz-Crc32", strconv.FormatUint(uint64(crc32.ChecksumIEEE(text)), 10)) // of DynamoDB's answers
	w.WriteHeader(status)
	_, _ = w.Write(text)
}

// json plays CloudWatch Logs and SQS.
func (s *StandIn) json(service string, w http.ResponseWriter, r *http.Request) {
	var in struct {
		LogGroupName, QueueName, QueueURL string
		StartTime                         int64
		Tags                              map[string]string
	}
	body := bytes.ReplaceAll(readAll(r), []byte("QueueUrl"), []byte("QueueURL"))
	if err := json.Unmarshal(body, &in); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	_, action, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	s.mu.Lock()
	function, known := s.groups[in.LogGroupName]
	queue := in.QueueName
	if in.QueueURL != "" {
		queue = in.QueueURL[strings.LastIndex(in.QueueURL, "/")+1:]
	}
	messages, there := s.queues[queue]
	s.mu.Unlock()
	switch {
	case service == "logs" && !known:
		jsonError(w, http.StatusBadRequest, "ResourceNotFoundException")
	case service == "sqs" && !there && action != "CreateQueue":
		jsonError(w, http.StatusBadRequest, "QueueDoesNotExist")
	case action == "FilterLogEvents":
		events, err := s.events(function, in.StartTime)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		writeJSON(w, map[string]any{"events": events})
	case action == "DescribeMetricFilters":
		writeJSON(w, map[string]any{"metricFilters": s.filters(function)})
	case action == "DeleteLogGroup":
		s.mu.Lock()
		delete(s.groups, in.LogGroupName)
		s.mu.Unlock()
		writeJSON(w, map[string]any{})
	case action == "CreateQueue", action == "GetQueueUrl":
		s.mu.Lock()
		s.queues[queue] = messages
		s.tagged[queue] = s.tagged[queue] || !there && len(in.Tags) > 0
		s.mu.Unlock()
		writeJSON(w, map[string]any{"QueueUrl": s.URL + "/" + Account + "/" + queue})
	case action == "ListQueueTags":
		writeJSON(w, map[string]any{"Tags": s.tags(queue)})
	case action == "SetQueueAttributes":
		writeJSON(w, map[string]any{})
	case action == "ReceiveMessage":
		var all []map[string]any
		for _, m := range messages {
			all = append(all, map[string]any{"Body": m})
		}
		writeJSON(w, map[string]any{"Messages": all})
	case action == "DeleteQueue":
		s.mu.Lock()
		delete(s.queues, queue)
		delete(s.tagged, queue)
		s.mu.Unlock()
		writeJSON(w, map[string]any{})
	default:
		s.unknown(w, service+" "+action)
	}
}

// tags are those of a bucket or a queue.
func (s *StandIn) tags(name string) map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tagged[name] {
		return map[string]string{"signalbox:prove": "x"}
	}
	return nil
}

// events are what the editions have logged for a function, with Lambda's own lines
// made up. Times of this machine say nothing of Lambda's: each request took 10 ms.
func (s *StandIn) events(function string, from int64) ([]map[string]any, error) {
	duration, start, more := 10.0, 45.0, 0
	switch {
	case s.is("requests-dearer"):
		duration = 100
	case s.is("requests-slow"):
		duration = 2500
	}
	if s.is("cold-start-slow") {
		start = 1500
	}
	s.mu.Lock()
	var folders []string
	for _, d := range s.editions {
		folders = append(folders, d.state)
	}
	switch {
	case s.wrong["log-lines-longer"]:
		more = 50
	case s.wrong["log-lines-thrice"]:
		more = 300
	}
	s.mu.Unlock()
	var all []map[string]any
	for _, folder := range folders {
		text, err := os.ReadFile(filepath.Join(folder, "logs", function+"Function.log")) //nolint:gosec // a folder of the stand-in
		if errors.Is(err, fs.ErrNotExist) {
			continue // it was never called
		}
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(string(text)) {
			line = strings.TrimSuffix(line, "\n")
			var e map[string]any
			if json.Unmarshal([]byte(line), &e) != nil {
				continue
			}
			at, err := time.Parse(time.RFC3339Nano, fmt.Sprint(e["timestamp"]))
			if err != nil || at.UnixMilli() < from {
				continue
			}
			add := func(message string) {
				message += strings.Repeat(" ", len(message)*more/100)
				all = append(all, map[string]any{"timestamp": at.UnixMilli(), "message": message})
			}
			if e["message"] != "request" {
				add(line)
				continue
			}
			e["duration_ms"] = duration
			text, err := json.Marshal(e)
			if err != nil {
				return nil, err
			}
			add(string(text))
			add(fmt.Sprintf(`{"time":"%s","type":"platform.start","record":{"requestId":"7a6f8e5c-0000-4000-8000-000000000000","functionArn":`+
				`"arn:aws:lambda:us-east-1:123456789012:function:signalbox-prove-%sFunction-0123456789ab","version":"12"}}`, e["timestamp"], function))
			add(fmt.Sprintf(`{"time":"%s","type":"platform.report","record":{"requestId":"7a6f8e5c-0000-4000-8000-000000000000","metrics":{"durationMs":%.3f,`+
				`"billedDurationMs":%.0f,"memorySizeMB":256,"maxMemoryUsedMB":32,"initDurationMs":%.2f},"status":"success"}}`, e["timestamp"], duration, duration+1, start))
		}
	}
	return all, nil
}

// filters are the metric filters of a log group, as the template declares them.
func (s *StandIn) filters(function string) []map[string]any {
	var all []map[string]any
	for _, r := range s.resources {
		if r.kind != "AWS::Logs::MetricFilter" || r.properties["LogGroupName"] != function+"LogGroup" {
			continue
		}
		transformations, _ := r.properties["MetricTransformations"].([]any)
		var shown []map[string]any
		for _, t := range transformations {
			declared, _ := t.(map[string]any)
			dimensions := map[string]string{}
			list, _ := declared["Dimensions"].([]any)
			for _, d := range list {
				pair, _ := d.(map[string]any)
				dimensions[fmt.Sprint(pair["Key"])] = fmt.Sprint(pair["Value"])
			}
			shown = append(shown, map[string]any{"metricName": declared["MetricName"], "metricNamespace": "Signalbox/stack", "metricValue": "1", "dimensions": dimensions})
		}
		all = append(all, map[string]any{"filterName": r.id, "metricTransformations": shown})
	}
	return all
}

// monitoring plays CloudWatch.
func (s *StandIn) monitoring(w http.ResponseWriter, r *http.Request) {
	in, err := cbor.Decode(readAll(r))
	members, ok := in.(cbor.Map)
	if err != nil || !ok {
		http.Error(w, "not CBOR", http.StatusBadRequest)
		return
	}
	answer := cbor.Map{}
	switch action := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]; action {
	case "GetMetricData":
		var results cbor.List
		queries, _ := members["MetricDataQueries"].(cbor.List)
		for i, q := range queries {
			query, _ := q.(cbor.Map)
			result := cbor.Map{"Id": query["Id"], "StatusCode": cbor.String("Complete"), "Values": cbor.List{cbor.Float64(1)}}
			if i == 0 && s.is("metric-missing") {
				result["Values"] = cbor.List{}
			}
			results = append(results, result)
		}
		answer["MetricDataResults"] = results
	case "SetAlarmState":
		name, _ := members["AlarmName"].(cbor.String)
		s.mu.Lock()
		for topic, queue := range s.heard {
			if !s.wrong["alarm-lost"] {
				s.queues[queue] = append(s.queues[queue], fmt.Sprintf(`{"TopicArn":%q,"Message":%q}`, topic, name))
			}
		}
		s.mu.Unlock()
	default:
		s.unknown(w, "monitoring "+action)
		return
	}
	w.Header().Set("Smithy-Protocol", "rpc-v2-cbor")
	w.Header().Set("Content-Type", "application/cbor")
	_, _ = w.Write(cbor.Encode(answer))
}

// lambda plays the versions and aliases of the functions.
func (s *StandIn) lambda(w http.ResponseWriter, r *http.Request) {
	d, ok := s.engines()
	if !ok {
		jsonError(w, http.StatusNotFound, "ResourceNotFoundException")
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.stacks[slices.IndexFunc(s.stacks, func(st *stack) bool { return st.deployment == d && st.status != deleteComplete })]
	w.Header().Set("Content-Type", "application/json")
	switch {
	case strings.HasSuffix(r.URL.Path, "/configuration"):
		architecture := st.parameters[architectures]
		if s.wrong["first-on-other-architecture"] && !d.second || s.wrong["second-on-other-architecture"] && d.second {
			architecture = map[string]string{"arm64": "x86_64", "x86_64": "arm64"}[architecture]
		}
		writeJSON(w, map[string]any{"Architectures": []string{architecture}})
	case strings.Contains(r.URL.Path, "/aliases/"):
		writeJSON(w, map[string]any{"Name": "live", "FunctionVersion": strconv.Itoa(st.version)})
	default:
		http.Error(w, r.URL.Path, http.StatusNotImplemented)
	}
}

// gateway plays the region's setting of API Gateway.
func (s *StandIn) gateway(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Method == http.MethodPatch {
		s.role = ""
	}
	writeJSON(w, map[string]any{"cloudwatchRoleArn": s.role})
}

// dynamodb plays what is about whole tables; the rest goes to the engine.
func (s *StandIn) dynamodb(w http.ResponseWriter, r *http.Request) {
	_, action, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	d, ok := s.engines()
	if action != "DescribeTable" && action != "UpdateTable" && action != "DeleteTable" {
		if !ok {
			jsonError(w, http.StatusBadRequest, "ResourceNotFoundException")
			return
		}
		forward(w, r, d.engines.DynamoDB, nil)
		return
	}
	var in struct {
		TableName                 string
		DeletionProtectionEnabled *bool
	}
	if err := json.Unmarshal(readAll(r), &in); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tables[in.TableName]
	switch {
	case t == nil || t.deleted:
		jsonError(w, http.StatusBadRequest, "ResourceNotFoundException")
		return
	case action == "DeleteTable" && s.wrong["table-not-deleted"]:
		jsonError(w, http.StatusBadRequest, "AccessDeniedException")
		return
	case action != "DescribeTable" && !s.keyOf(in.TableName):
		jsonError(w, http.StatusBadRequest, "KMSKeyDisabledException")
		return
	case action == "DeleteTable" && t.protected:
		jsonError(w, http.StatusBadRequest, "ValidationException")
		return
	case action == "DeleteTable":
		t.deleted = true
	case action == "UpdateTable" && in.DeletionProtectionEnabled != nil:
		t.protected = *in.DeletionProtectionEnabled
	}
	shown := map[string]any{"TableName": in.TableName, "TableStatus": "ACTIVE", "DeletionProtectionEnabled": t.protected}
	if ok && !s.wrong["table-not-encrypted"] {
		shown["SSEDescription"] = map[string]any{"Status": "ENABLED", "SSEType": "KMS", "KMSMasterKeyArn": d.outputs["StorageKeyArn"]}
	}
	writeJSON(w, map[string]any{"Table": shown, "TableDescription": shown})
}

// keyOf reports whether the storage key of a table's stack can be used; stacks one after
// another have tables of one name here. The caller holds the lock.
func (s *StandIn) keyOf(table string) bool {
	for _, st := range slices.Backward(s.stacks) {
		if !slices.ContainsFunc(st.resources, func(r *resource) bool { return r.physical == table }) {
			continue
		}
		for _, r := range st.resources {
			if r.id == "StorageKey" && s.keys[r.physical].state == "Enabled" {
				return true
			}
		}
	}
	return false
}

// kms plays the states of keys; the rest goes to the engine.
func (s *StandIn) kms(w http.ResponseWriter, r *http.Request) {
	body := readAll(r)
	var in struct {
		KeyID               string `json:"KeyId"`
		PendingWindowInDays int
	}
	_ = json.Unmarshal(body, &in) // what it cannot read is for the engine
	_, action, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	s.mu.Lock()
	k := s.keys[in.KeyID[strings.LastIndex(in.KeyID, "/")+1:]]
	if k != nil {
		defer s.mu.Unlock()
	} else {
		s.mu.Unlock()
	}
	switch {
	case k == nil:
		if d, ok := s.engines(); ok {
			r.Body = io.NopCloser(bytes.NewReader(body))
			forward(w, r, d.engines.KMS, nil)
			return
		}
		jsonError(w, http.StatusBadRequest, "NotFoundException")
		return
	case slices.Contains([]string{"Decrypt", "Encrypt", "GenerateDataKey", "ReEncrypt"}, action):
		jsonError(w, http.StatusBadRequest, "AccessDeniedException") // as the keys' policies have it
		return
	case action == "DescribeKey":
	case action == "ScheduleKeyDeletion" && k.state != "PendingDeletion" && !s.wrong["key-not-enabled"]:
		k.state, k.when = "PendingDeletion", time.Now().AddDate(0, 0, in.PendingWindowInDays)
	case action == "CancelKeyDeletion" && k.state == "PendingDeletion":
		k.state = "Disabled"
	case action == "EnableKey" && k.state == "Disabled" && !s.wrong["key-not-enabled"]:
		k.state = "Enabled"
	default:
		jsonError(w, http.StatusBadRequest, "KMSInvalidStateException")
		return
	}
	shown := map[string]any{"KeyId": in.KeyID, "KeyState": k.state}
	if k.state == "PendingDeletion" {
		shown["DeletionDate"] = k.when.Unix()
	}
	writeJSON(w, map[string]any{"KeyMetadata": shown, "KeyId": in.KeyID, "KeyState": k.state, "DeletionDate": k.when.Unix()})
}

// s3 plays buckets without an engine; objects of the files' bucket are real.
func (s *StandIn) s3(w http.ResponseWriter, r *http.Request) {
	bucket, object, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	d, ok := s.engines()
	s.mu.Lock()
	objects, known := s.buckets[bucket]
	s.mu.Unlock()
	real := ok && bucket == d.outputs["FilesBucketName"]
	switch {
	case r.Method == http.MethodPut && object == "" && r.URL.RawQuery == "":
		s.mu.Lock()
		s.buckets[bucket] = nil
		s.mu.Unlock()
	case !known:
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, "<Error><Code>NoSuchBucket</Code></Error>")
	case r.URL.Query().Has("tagging") && r.Method == http.MethodPut:
		s.mu.Lock()
		s.tagged[bucket] = true
		s.mu.Unlock()
	case r.URL.Query().Has("tagging") && s.tags(bucket) == nil:
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, "<Error><Code>NoSuchTagSet</Code></Error>")
	case r.URL.Query().Has("tagging"):
		_, _ = io.WriteString(w, "<Tagging><TagSet><Tag>"+element("Key", "signalbox:prove")+element("Value", "x")+"</Tag></TagSet></Tagging>")
	case r.Method == http.MethodDelete && object == "":
		if len(objects) > 0 {
			w.WriteHeader(http.StatusConflict)
			_, _ = io.WriteString(w, "<Error><Code>BucketNotEmpty</Code></Error>")
			return
		}
		s.mu.Lock()
		delete(s.buckets, bucket)
		delete(s.tagged, bucket)
		s.mu.Unlock()
		w.WriteHeader(http.StatusNoContent)
	case real:
		s.files(w, r, d, object)
	case r.URL.Query().Has("versions"):
		var b strings.Builder
		for _, o := range objects {
			b.WriteString("<Version>" + element("Key", o) + element("VersionId", "null") + "</Version>")
		}
		_, _ = io.WriteString(w, "<ListVersionsResult>"+element("Name", bucket)+element("IsTruncated", "false")+b.String()+"</ListVersionsResult>")
	case r.URL.Query().Has("delete"):
		s.mu.Lock()
		s.buckets[bucket] = nil
		s.mu.Unlock()
		_, _ = io.WriteString(w, "<DeleteResult></DeleteResult>")
	default:
		s.unknown(w, "s3 "+r.Method+" "+r.URL.String())
	}
}

// files passes a request on to the engine, and makes its answer wrong where a switch
// says so.
func (s *StandIn) files(w http.ResponseWriter, r *http.Request, d *deployment, object string) {
	missing := r.Method == http.MethodDelete && object == "files/prove/missing"
	if missing && s.is("s3-missing-204") {
		w.Header().Set("X-Amz-Request-Id", "made-up")
		w.WriteHeader(http.StatusNoContent)
		return
	}
	var body []byte
	if r.URL.Query().Has("delete") {
		body = readAll(r)
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	forward(w, r, d.engines.S3, func(answer *http.Response) error {
		if object == "files/prove/present" && r.Method == http.MethodDelete && s.is("s3-without-request-id") {
			answer.Header.Del("X-Amz-Request-Id")
		}
		cut := bytes.Contains(body, []byte("files/prove/confirmed")) && s.is("s3-unconfirmed")
		unnamed := r.URL.Query().Has("versions") && s.is("s3-listing-unnamed")
		if !cut && !unnamed {
			return nil
		}
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			return err
		}
		if cut {
			end := bytes.Index(text, []byte("</Deleted>")) + len("</Deleted>")
			text = slices.Concat(text[:bytes.Index(text, []byte("<Deleted>"))], text[end:])
		} else {
			text = bytes.Replace(text, []byte("<Name>"), []byte("<Name>another-"), 1)
		}
		answer.Body, answer.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
		answer.Header.Set("Content-Length", strconv.Itoa(len(text)))
		return nil
	})
}
