package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	cwtypes "github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// function is one of the three.
type function struct {
	id, operation, group string // logical ids
	timeColumn           int    // of the cost table's row "Lambda time"
}

var functions = []function{
	{"GetSyncJobFunction", "getSyncJob", "GetSyncJobLogGroup", 0},
	{"CreateByokKeyFunction", "createByokKey", "CreateByokKeyLogGroup", 1},
	{"DeleteFileFunction", "deleteFile", "DeleteFileLogGroup", 1},
}

// observationProbes are about what logs, metrics and alarms have of the requests.
func observationProbes() []probe {
	return []probe{
		{
			id: "metric-filters", stage: last,
			asks:    "whether each metric filter makes its metric of what was logged",
			expects: "data for every metric that requests of all kinds move",
			source:  "CloudWatch Logs User Guide, \"Filter and pattern syntax for metric filters\"",
			ask:     askMetrics,
			wrong:   map[string]verdict{"metric-missing": fail},
		}, {
			id: "alarm-topic", stage: last,
			asks:    "whether an alarm's message gets through the encrypted topic to a subscriber",
			expects: "the message arrives",
			source:  "CloudWatch User Guide, \"Notifying users on alarm changes\"; Amazon SNS Developer Guide, \"Key management\": the key's policy lets CloudWatch in",
			ask:     askAlarm,
			wrong:   map[string]verdict{"alarm-lost": fail},
		}, {
			id: "cold-start", stage: last,
			asks:    "how long a function takes to start, on each architecture",
			expects: "p99 of the initialisation at most 1 s",
			source:  "Lambda's platform.report log lines; a start beyond 1 s comes near the Latency alarm's 2 s",
			ask:     askColdStart,
			wrong:   map[string]verdict{"cold-start-slow": fail},
		}, {
			id: "run-time", stage: last,
			asks:    "how long requests and their round trips take, on each architecture",
			expects: "p50 at most what infra/operations.md counts with, p99 at most the 2 s of the Latency alarm",
			source:  "the functions' own log lines; a p50 beyond the table's row \"Lambda time\" DIFFERS: the table has to be corrected",
			ask:     askRunTime,
			wrong:   map[string]verdict{"requests-dearer": differs, "requests-slow": fail},
		}, {
			id: "log-bytes", stage: last,
			asks:    "how many bytes of log a request costs, Lambda's own lines included",
			expects: "each kind of line at most a tenth longer than the cost table counts with",
			source:  "infra/request-bytes.json; up to twice as much DIFFERS: the file has to be corrected, and the table follows it",
			ask:     askLogBytes,
			wrong:   map[string]verdict{"log-lines-longer": differs, "log-lines-thrice": fail},
		},
	}
}

// event is a line of a function's log.
type event struct {
	at   time.Time
	text string
	// Members of the function's own line, and of Lambda's.
	Message    string  `json:"message"`
	Status     int     `json:"status"`
	Duration   float64 `json:"duration_ms"`
	RoundTrips float64 `json:"round_trips"`
	Type       string  `json:"type"`
	Record     struct {
		Metrics struct {
			Init float64 `json:"initDurationMs"`
		} `json:"metrics"`
	} `json:"record"`
}

// events reads the log of a function since the asker began.
func (a *asker) events(ctx context.Context, f function) ([]event, error) {
	var all []event
	pages := cloudwatchlogs.NewFilterLogEventsPaginator(a.logs, &cloudwatchlogs.FilterLogEventsInput{
		LogGroupName: aws.String(a.physical[f.group]), StartTime: aws.Int64(a.began.UnixMilli()),
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("reading the log of %s: %w", f.id, err)
		}
		for _, e := range page.Events {
			read := event{at: time.UnixMilli(aws.ToInt64(e.Timestamp)), text: aws.ToString(e.Message)}
			_ = json.Unmarshal([]byte(read.text), &read) // a line that is not JSON is none of ours, and costs its bytes
			all = append(all, read)
		}
	}
	return all, nil
}

// percentile of values, which it sorts. There is at least one.
func percentile(values []float64, p float64) float64 {
	slices.Sort(values)
	return values[max(0, int(math.Ceil(p*float64(len(values))))-1)]
}

// period is the time of one architecture.
type period struct {
	architecture string
	from, to     time.Time
}

// periods are those of the two deployments, or all the time since a verify began.
func (a *asker) periods() []period {
	now := time.Now().Add(time.Minute)
	if a.lifecycle == nil || a.secondAt.IsZero() {
		return []period{{a.parameters["Architecture"], a.began, now}}
	}
	return []period{
		{a.lifecycle.architectures[0], a.began, a.secondAt}, {a.lifecycle.architectures[1], a.secondAt, now},
	}
}

func (p period) of(events []event, value func(event) (float64, bool)) []float64 {
	var values []float64
	for _, e := range events {
		if v, ok := value(e); ok && !e.at.Before(p.from) && e.at.Before(p.to) {
			values = append(values, v)
		}
	}
	return values
}

// measure shows p50 and p99 of a value for each function and architecture. It
// returns the worst by judge.
func (a *asker) measure(ctx context.Context, unit string, value func(event) (float64, bool), judge func(function, []float64) verdict) (finding, error) {
	worst := finding{verdict: pass}
	var seen []string
	for _, f := range functions {
		events, err := a.events(ctx, f)
		if err != nil {
			return finding{}, err
		}
		for _, p := range a.periods() {
			values := p.of(events, value)
			if len(values) == 0 {
				return failed("the log of %s has no such line of %s", f.id, p.architecture), nil
			}
			seen = append(seen, fmt.Sprintf("%s %s p50 %.1f p99 %.1f %s (%d)", f.operation, p.architecture,
				percentile(values, 0.5), percentile(values, 0.99), unit, len(values)))
			worst.verdict = worse(worst.verdict, judge(f, values))
		}
	}
	worst.seen = strings.Join(seen, "; ")
	return worst, nil
}

// worse returns that of two verdicts on the same question.
func worse(a, b verdict) verdict {
	rank := []verdict{pass, differs, fail}
	return rank[max(slices.Index(rank, a), slices.Index(rank, b))]
}

func askColdStart(ctx context.Context, a *asker) (finding, error) {
	return a.measure(ctx, "ms", func(e event) (float64, bool) { return e.Record.Metrics.Init, e.Record.Metrics.Init > 0 },
		func(_ function, values []float64) verdict {
			if percentile(values, 0.99) > 1000 {
				return fail
			}
			return pass
		})
}

func askRunTime(ctx context.Context, a *asker) (finding, error) {
	assumed, err := a.assumed(`Lambda time, .*× (\d+) or (\d+) ms`)
	if err != nil {
		return finding{}, err
	}
	whole, err := a.measure(ctx, "ms", func(e event) (float64, bool) { return e.Duration, e.Message == "request" },
		func(f function, values []float64) verdict {
			switch {
			case percentile(values, 0.99) > 2000:
				return fail
			case percentile(values, 0.5) > assumed[f.timeColumn]:
				return differs
			}
			return pass
		})
	if err != nil {
		return finding{}, err
	}
	each, err := a.measure(ctx, "ms a round trip", func(e event) (float64, bool) {
		return e.Duration / e.RoundTrips, e.Message == "request" && e.RoundTrips > 0
	}, func(function, []float64) verdict { return pass })
	whole.seen += "; " + each.seen
	return whole, err
}

func askLogBytes(ctx context.Context, a *asker) (finding, error) {
	var assumed map[string]map[string]int
	text, err := os.ReadFile(filepath.Join(a.root, "infra", "request-bytes.json"))
	if err == nil {
		err = json.Unmarshal(text, &assumed)
	}
	if err != nil {
		return finding{}, fmt.Errorf("reading what the cost table counts with: %w", err)
	}
	worst := finding{verdict: pass}
	var seen []string
	for _, f := range functions {
		events, err := a.events(ctx, f)
		if err != nil {
			return finding{}, err
		}
		sizes := map[string][]float64{}
		for _, e := range events {
			// A refused request logs less; "start" and "report" are Lambda's own.
			kind := cmp.Or(strings.TrimPrefix(e.Type, "platform."), e.Message)
			if e.Status < 300 {
				sizes[kind] = append(sizes[kind], float64(len(e.text)))
			}
		}
		for _, kind := range []string{"request", "audit", "start", "report"} {
			want := float64(assumed[f.operation][kind])
			if want == 0 {
				continue
			}
			if len(sizes[kind]) == 0 {
				return failed("the log of %s has no line %q", f.id, kind), nil
			}
			got := percentile(sizes[kind], 0.5)
			seen = append(seen, fmt.Sprintf("%s %s %.0f bytes, counted with %.0f", f.operation, kind, got, want))
			switch {
			case got > 2*want:
				worst.verdict = fail
			case got > 1.1*want:
				worst.verdict = worse(worst.verdict, differs)
			}
		}
	}
	worst.seen = strings.Join(seen, "; ")
	return worst, nil
}

// assumed reads two numbers of a row of the cost table in infra/operations.md.
func (a *asker) assumed(row string) ([]float64, error) {
	text, err := os.ReadFile(filepath.Join(a.root, "infra", "operations.md"))
	if err != nil {
		return nil, fmt.Errorf("reading the cost table: %w", err)
	}
	found := regexp.MustCompile(row).FindSubmatch(text)
	if found == nil {
		return nil, fmt.Errorf("infra/operations.md has no row of the form %q", row)
	}
	var numbers []float64
	for _, text := range found[1:] {
		n, err := strconv.ParseFloat(string(text), 64)
		if err != nil {
			return nil, err
		}
		numbers = append(numbers, n)
	}
	return numbers, nil
}

// quiet are the metrics that no request of a healthy service moves.
var quiet = []string{"ServerErrors", "StoredFaults", "SealingFailures", "KeyChanges"}

// metric is a metric with its dimensions.
type metric struct {
	name       string
	dimensions map[string]string
}

func (m metric) String() string { return fmt.Sprint(m.name, m.dimensions) }

// expectedMetrics are those that the stack's metric filters must have made. One
// dimension of theirs may have many values: those of a refused request are asked for.
func (a *asker) expectedMetrics(ctx context.Context) (string, []metric, error) {
	groups := map[string]string{"AccessLogGroup": ""}
	for _, f := range functions {
		groups[f.group] = f.operation
	}
	namespace, all := "", []metric(nil)
	for _, group := range slices.Sorted(maps.Keys(groups)) {
		pages := cloudwatchlogs.NewDescribeMetricFiltersPaginator(a.logs, &cloudwatchlogs.DescribeMetricFiltersInput{LogGroupName: aws.String(a.physical[group])})
		for pages.HasMorePages() {
			page, err := pages.NextPage(ctx)
			if err != nil {
				return "", nil, fmt.Errorf("listing metric filters: %w", err)
			}
			for _, filter := range page.MetricFilters {
				for _, t := range filter.MetricTransformations {
					m := metric{aws.ToString(t.MetricName), map[string]string{}}
					for dimension := range t.Dimensions {
						m.dimensions[dimension] = map[string]string{"Operation": groups[group], "Status": "401", "Reason": "missing"}[dimension]
					}
					namespace = aws.ToString(t.MetricNamespace)
					if !slices.Contains(quiet, m.name) {
						all = append(all, m)
					}
				}
			}
		}
	}
	if len(all) == 0 {
		return "", nil, errors.New("the stack has no metric filters")
	}
	return namespace, all, nil
}

func askMetrics(ctx context.Context, a *asker) (finding, error) {
	for _, r := range []request{get(a.job, ""), post("", newCredential()), remove("file_x", "")} {
		if _, err := a.send(ctx, r); err != nil {
			return finding{}, err
		}
	}
	namespace, all, err := a.expectedMetrics(ctx)
	if err != nil {
		return finding{}, err
	}
	in := &cloudwatch.GetMetricDataInput{StartTime: aws.Time(a.began.Truncate(time.Minute))}
	for i, m := range all {
		q := cwtypes.MetricDataQuery{Id: aws.String(fmt.Sprint("m", i)), MetricStat: &cwtypes.MetricStat{
			Stat: aws.String("SampleCount"), Period: aws.Int32(60), Metric: &cwtypes.Metric{Namespace: &namespace, MetricName: aws.String(m.name)},
		}}
		for name, value := range m.dimensions {
			q.MetricStat.Metric.Dimensions = append(q.MetricStat.Metric.Dimensions, cwtypes.Dimension{Name: aws.String(name), Value: aws.String(value)})
		}
		in.MetricDataQueries = append(in.MetricDataQueries, q)
	}
	var missing []string
	complete, err := a.eventually(ctx, func() (bool, error) {
		in.EndTime = aws.Time(time.Now().Add(time.Minute))
		have := map[string]bool{}
		pages := cloudwatch.NewGetMetricDataPaginator(a.metrics, in)
		for pages.HasMorePages() {
			page, err := pages.NextPage(ctx)
			if err != nil {
				return false, err
			}
			for _, r := range page.MetricDataResults {
				have[aws.ToString(r.Id)] = have[aws.ToString(r.Id)] || len(r.Values) > 0
			}
		}
		missing = nil
		for i, m := range all {
			if !have[fmt.Sprint("m", i)] {
				missing = append(missing, m.String())
			}
		}
		return len(missing) == 0, nil
	})
	if err == nil && !complete {
		return failed("of %d metrics these have no data: %s", len(all), strings.Join(missing, ", ")), nil
	}
	return passed("%d metrics have data", len(all)), err
}

// queueName is the queue that hears of the alarm.
func queueName(stack string) string { return stack + "-prove" }

func askAlarm(ctx context.Context, a *asker) (f finding, err error) {
	topic, alarm := a.outputs["AlarmTopicArn"], a.physical["ServerErrorsAlarm"]
	if topic == "" || alarm == "" {
		return finding{}, fmt.Errorf("the stack has no topic or no alarm ServerErrorsAlarm: %v %v", a.outputs, a.physical)
	}
	queue, err := a.sqs.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: aws.String(queueName(a.name)), Tags: map[string]string{proveTag: a.name}})
	if err != nil {
		return finding{}, fmt.Errorf("making a queue: %w", err)
	}
	if made, err := a.queueMade(ctx, queue.QueueUrl); err != nil || !made {
		return finding{}, errors.Join(err, fmt.Errorf("queue %s has no tag %s: prove did not make it", queueName(a.name), proveTag))
	}
	arn := fmt.Sprintf("arn:%s:sqs:%s:%s:%s", strings.Split(topic, ":")[1], a.config.Region, a.accountID, queueName(a.name))
	policy := fmt.Sprintf(`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"sns.amazonaws.com"},`+
		`"Action":"sqs:SendMessage","Resource":%q,"Condition":{"ArnEquals":{"aws:SourceArn":%q}}}]}`, arn, topic)
	if _, err := a.sqs.SetQueueAttributes(ctx, &sqs.SetQueueAttributesInput{
		QueueUrl: queue.QueueUrl, Attributes: map[string]string{string(sqstypes.QueueAttributeNamePolicy): policy},
	}); err != nil {
		return finding{}, fmt.Errorf("letting the topic write to the queue: %w", err)
	}
	if _, err := a.sns.Subscribe(ctx, &sns.SubscribeInput{TopicArn: &topic, Protocol: aws.String("sqs"), Endpoint: &arn}); err != nil {
		return finding{}, fmt.Errorf("subscribing the queue: %w", err)
	}
	if _, err := a.metrics.SetAlarmState(ctx, &cloudwatch.SetAlarmStateInput{
		AlarmName: &alarm, StateValue: cwtypes.StateValueAlarm, StateReason: aws.String("make prove asks whether this arrives"),
	}); err != nil {
		return finding{}, fmt.Errorf("setting an alarm off: %w", err)
	}
	arrived, err := a.eventually(ctx, func() (bool, error) {
		out, err := a.sqs.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: queue.QueueUrl, WaitTimeSeconds: 1, MaxNumberOfMessages: 10})
		if err != nil {
			return false, fmt.Errorf("reading the queue: %w", err)
		}
		return slices.ContainsFunc(out.Messages, func(m sqstypes.Message) bool { return strings.Contains(aws.ToString(m.Body), alarm) }), nil
	})
	if err == nil && !arrived {
		return failed("no message of %s in %s", alarm, a.patience), nil
	}
	return passed("the message of %s arrived", alarm), err
}
