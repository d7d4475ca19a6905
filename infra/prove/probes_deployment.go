package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	cfntypes "github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	kmstypes "github.com/aws/aws-sdk-go-v2/service/kms/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
)

// deploymentProbes are about deployments: of the right versions, of a faulty one, of
// one that fails.
func deploymentProbes() []probe {
	return []probe{
		{
			id: "contract", live: true,
			asks:    "whether the contract suite of infra/contract passes against the deployed API",
			expects: "every test passes",
			source: "infra/openapi.yaml; what a gateway may refuse by itself, such as a broken escape in a path, DIFFERS: " +
				"the tests that send it are listed in infra/prove/suite.go",
			ask: func(ctx context.Context, a *asker) (finding, error) {
				if a.suite == nil {
					return unasked("left out"), nil
				}
				return a.suite(ctx, a)
			},
			wrong: map[string]verdict{"cache-control-dropped": fail},
		},
		started("first-architecture", first, 0),
		started("second-architecture", second, 1),
		{
			id: "canary", stage: third,
			asks:    "whether a version that crashes is taken back by the canary's alarm",
			expects: "the update is rolled back, the alias points to the version before, and GET answers 200",
			source:  "AWS SAM Developer Guide, \"Deploying serverless applications gradually\": an alarm that goes off rolls back",
			ask: func(ctx context.Context, a *asker) (finding, error) {
				seen, err := a.crash(ctx)
				if err != nil {
					return finding{}, err
				}
				text := fmt.Sprintf("%s, alias at version %s, before %s; %d crashes and %d good answers meanwhile; then %v",
					seen.status, seen.after, seen.before, len(seen.crashes), seen.good, seen.later)
				if seen.status != string(cfntypes.StackStatusUpdateRollbackComplete) || seen.after != seen.before || seen.later[http.StatusOK] == 0 ||
					len(seen.crashes)+len(seen.malformed) == 0 || // rolled back for another reason
					len(seen.later) > 1 && seen.later[http.StatusOK]+seen.later[http.StatusTooManyRequests] < 10 {
					return failed("%s", text), nil
				}
				return passed("%s", text), nil
			},
			wrong: map[string]verdict{"canary-not-rolled-back": fail},
		}, {
			id: "crash-answer", stage: third,
			asks:    "how the gateway answers for a function that ended without an answer",
			expects: "500 in our envelope",
			source:  responseTypes + ": INTEGRATION_FAILURE or DEFAULT_5XX, both as the template declares them",
			ask: func(ctx context.Context, a *asker) (finding, error) {
				seen, err := a.crash(ctx)
				return envelopes(seen.crashes), err
			},
			wrong: map[string]verdict{"crash-answer-502": fail},
		}, {
			id: "malformed-answer", stage: third,
			asks:    "how the gateway answers for a function whose answer is no proxy response",
			expects: "500 in our envelope",
			source:  "API Gateway Developer Guide, \"Handle Lambda errors\": 502 where it is not customised; our DEFAULT_5XX pins 500",
			ask: func(ctx context.Context, a *asker) (finding, error) {
				seen, err := a.crash(ctx)
				return envelopes(seen.malformed), err
			},
			wrong: map[string]verdict{"malformed-answer-502": fail},
		}, {
			id: "failed-creation", stage: last,
			asks:    "whether a stack whose creation fails half way cleans up after itself",
			expects: "ROLLBACK_COMPLETE; left are the protected tables, and the keys waiting for deletion",
			source:  "CloudFormation User Guide, \"DeletionPolicy attribute\": RetainExceptOnCreate, Retain",
			ask:     askFailedCreation,
			wrong:   map[string]verdict{"rollback-failed": fail, "rollback-left-bucket": fail},
		},
	}
}

// started asks whether the functions run on an architecture.
func started(id string, at stage, nth int) probe {
	return probe{
		id: id, stage: at,
		asks:    "whether the functions start on " + [2]string{"arm64", "x86-64, where the stack changes to it"}[nth],
		expects: "Lambda reports the architecture that was asked for; GET 200, POST 201, DELETE 404",
		source:  "AWS Lambda Developer Guide, \"Selecting and configuring an instruction set architecture\"",
		ask: func(ctx context.Context, a *asker) (finding, error) {
			want := a.parameters["Architecture"]
			for _, function := range functions {
				out, err := a.lambda.GetFunctionConfiguration(ctx, &lambda.GetFunctionConfigurationInput{
					FunctionName: aws.String(a.physical[function.id]), Qualifier: aws.String("live"),
				})
				if err != nil {
					return finding{}, err
				}
				if len(out.Architectures) != 1 || string(out.Architectures[0]) != want {
					return failed("%s runs on %v, not on %s", function.id, out.Architectures, want), nil
				}
			}
			for i, r := range []request{get(a.job, a.management), post(a.management, newCredential()), remove("file_unknown", a.management)} {
				var got answer
				if _, err := a.eventually(ctx, func() (done bool, err error) { // the throttle of the second deployment is low
					got, err = a.send(ctx, r)
					return got.status != http.StatusTooManyRequests, err
				}); err != nil {
					return finding{}, err
				}
				if got.status != []int{http.StatusOK, http.StatusCreated, http.StatusNotFound}[i] {
					return failed("%s %s: %s", r.method, r.path, got), nil
				}
			}
			return passed("three functions on %s; 200, 201, 404", want), nil
		},
		wrong: map[string]verdict{[2]string{"first-on-other-architecture", "second-on-other-architecture"}[nth]: fail},
	}
}

// crash deploys the faulty version, once.
func (a *asker) crash(ctx context.Context) (crash, error) {
	return a.lifecycle.crashed(ctx)
}

// envelopes judges the answers to requests that a function did not answer.
func envelopes(answers []answer) finding {
	if len(answers) == 0 {
		return failed("no request reached such a function")
	}
	for _, got := range answers {
		if problem := got.problem(http.StatusInternalServerError); problem != "" {
			return failed("%s: %s", problem, got)
		}
	}
	return passed("%d times 500 in our envelope", len(answers))
}

// kept are the resources that a failed creation may leave: CloudFormation retains
// protected tables even then, and the region's logging role on purpose.
var kept = []string{"AccessTable", "CredentialsTable", "SyncJobsTable", "GatewayLogging", "GatewayLoggingRoleForRegion"}

func askFailedCreation(ctx context.Context, a *asker) (finding, error) {
	s, resources, err := a.lifecycle.failed(ctx)
	if err != nil {
		return finding{}, err
	}
	var left []string
	made := slices.ContainsFunc(resources, func(r cfntypes.StackResourceSummary) bool {
		return aws.ToString(r.LogicalResourceId) == "AccessTable" && aws.ToString(r.PhysicalResourceId) != ""
	})
	if !made {
		return failed("%s, and it failed before it made a table: %v", s.StackStatus, a.lifecycle.failure), nil
	}
	for _, r := range resources {
		id := aws.ToString(r.LogicalResourceId)
		switch {
		case aws.ToString(r.ResourceType) == "AWS::KMS::Key" && aws.ToString(r.PhysicalResourceId) != "":
			key, err := a.kms.DescribeKey(ctx, &kms.DescribeKeyInput{KeyId: r.PhysicalResourceId})
			if err != nil {
				return finding{}, err
			}
			if key.KeyMetadata.KeyState != kmstypes.KeyStatePendingDeletion {
				left = append(left, fmt.Sprintf("%s (%s)", id, key.KeyMetadata.KeyState))
			}
		case r.ResourceStatus == cfntypes.ResourceStatusDeleteComplete, aws.ToString(r.PhysicalResourceId) == "":
		case !slices.Contains(kept, id):
			left = append(left, fmt.Sprintf("%s (%s)", id, r.ResourceStatus))
		}
	}
	if s.StackStatus != cfntypes.StackStatusRollbackComplete || len(left) > 0 {
		return failed("%s; left besides what may be: %s", s.StackStatus, strings.Join(left, ", ")), nil
	}
	return passed("%s; only protected tables and keys waiting for deletion are left", s.StackStatus), nil
}
