package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// Names of request headers: those that reach a provider, and some of those that do not. A
// client's sign-in, keys, address, traces and accounts are no provider's business.
var toProvider, fromClient = strings.Fields(`
	accept accept-encoding content-type user-agent
	anthropic-beta anthropic-version idempotency-key openai-beta x-client-request-id x-grok-conv-id x-request-id
	x-stainless-arch x-stainless-async x-stainless-helper-method x-stainless-lang x-stainless-os x-stainless-package-version
	x-stainless-raw-response x-stainless-read-timeout x-stainless-retry-count x-stainless-runtime x-stainless-runtime-version x-stainless-timeout
`), strings.Fields(`
	api-key cookie ocp-apim-subscription-key proxy-authorization x-access-token x-amz-security-token x-api-key x-api-token x-auth-token x-csrf-token
	x-figma-token x-functions-key x-goog-api-key x-goog-iam-authorization-token x-gitlab-token x-ms-token-aad-access-token x-vault-token
	cf-access-client-id cf-access-client-secret cf-access-jwt-assertion cf-access-authenticated-user-email x-amzn-oidc-accesstoken x-amzn-oidc-data
	x-amzn-oidc-identity x-auth-request-access-token x-auth-request-email x-auth-request-user x-goog-authenticated-user-email x-goog-authenticated-user-id
	x-goog-iap-jwt-assertion x-ms-client-principal x-ms-client-principal-id x-ms-client-principal-name x-remote-user x-saml-assertion x-user x-user-id
	remote-user x-client-cert x-ssl-client-cert x-tailscale-user-login x-webauth-user
	anthropic-organization-id anthropic-user-profile-id anthropic-workspace-id openai-organization openai-project x-goog-user-project x-amz-date
	cf-connecting-ip cf-connecting-ipv6 client-ip fastly-client-ip fly-client-ip forwarded true-client-ip x-appengine-user-ip x-azure-clientip
	x-azure-socketip x-client-ip x-cluster-client-ip x-forwarded x-forwarded-client-cert x-forwarded-for x-forwarded-host x-forwarded-port x-forwarded-proto
	x-original-forwarded-for x-original-host x-originating-ip x-real-ip x-remote-ip x-true-client-ip via
	b3 baggage sentry-trace traceparent tracestate uber-trace-id x-amzn-trace-id x-b3-sampled x-b3-spanid x-b3-traceid x-cloud-trace-context
	x-correlation-id x-datadog-parent-id x-datadog-trace-id x-datadog-sampling-priority x-honeycomb-trace x-instana-t x-newrelic-id x-ot-span-context
	accept-language cache-control date dnt from http-referer if-match if-none-match origin pragma priority range referer save-data
	sec-ch-ua sec-fetch-dest sec-fetch-mode sec-fetch-site sec-gpc x-requested-with x-title
	x-envoy-attempt-count x-envoy-decorator-operation x-envoy-expected-rq-timeout-ms x-envoy-external-address x-envoy-force-trace x-envoy-internal
	x-envoy-original-path x-signalbox-account x-signalbox-host x-signalbox-plan x-signalbox-provider x-signalbox-user
	x-http-method-override x-method-override x-original-url x-rewrite-url x-stainless x-amzn-bedrock-guardrailidentifier x-ms-oai-example
`)

// Names of response headers: those that come back, those that the owner of the key gets, and
// some that nobody gets. They are about a provider's account or its own origin.
var toCaller, toOwner, fromProvider = strings.Fields(`
	cache-control content-disposition content-language content-type date openai-processing-ms openai-version retry-after retry-after-ms
	x-should-retry apim-request-id mistral-correlation-id request-id x-amzn-requestid x-ms-request-id x-request-id
`), strings.Fields(`
	anthropic-ratelimit-input-tokens-remaining anthropic-ratelimit-requests-limit anthropic-ratelimit-tokens-reset
	x-ratelimit-limit-requests x-ratelimit-limit-tokens x-ratelimit-remaining-requests x-ratelimit-remaining-tokens x-ratelimit-reset-tokens
`), strings.Fields(`
	access-control-allow-credentials access-control-allow-origin access-control-expose-headers accept-ch alt-svc clear-site-data
	content-location content-security-policy content-security-policy-report-only cross-origin-embedder-policy cross-origin-opener-policy
	cross-origin-resource-policy expect-ct link location nel origin-agent-cluster p3p permissions-policy public-key-pins refresh referrer-policy
	report-to reporting-endpoints service-worker-allowed set-cookie set-login sourcemap speculation-rules strict-transport-security
	timing-allow-origin x-content-type-options x-dns-prefetch-control x-frame-options x-permitted-cross-domain-policies x-xss-protection
	anthropic-organization-id anthropic-workspace-id openai-organization openai-project x-goog-project x-groq-region x-ms-region x-ms-deployment-name
	x-ms-rai-invoked azureml-model-session azure-openai-deployment x-accel-buffering x-accel-redirect x-sendfile
	age cf-cache-status cf-ray etag expires last-modified pragma server-timing vary via x-amz-cf-id x-amz-cf-pop x-cache x-cache-hits x-fastly-request-id
	x-served-by x-timer x-varnish x-powered-by x-aspnet-version x-runtime x-backend-server x-envoy-attempt-count x-envoy-decorator-operation
	x-envoy-overloaded x-envoy-ratelimited x-envoy-upstream-service-time x-envoy-immediate-health-check-fail
	proxy-authenticate www-authenticate authentication-info proxy-authentication-info x-api-key api-key authorization x-auth-token
	x-signalbox-account x-signalbox-credential x-signalbox-key x-signalbox-outcome x-signalbox-plan x-signalbox-provider x-signalbox-reason
	x-ratelimit x-kong-proxy-latency x-litellm-key x-robots-tag x-trace-id x-b3-traceid traceparent tracestate x-amzn-trace-id x-cloud-trace-context
	x-amz-request-id x-amz-id-2 x-azure-ref x-cloud-trace x-github-request-id x-goog-request-params x-guploader-uploadid x-vercel-id x-wp-total
	x-oss-request-id x-server-name x-host x-node cdn-loop cdn-cache-control surrogate-control surrogate-key x-clacks-overhead
	x-ua-compatible x-webkit-csp warning tk topics priority protocol-query retry-scope x-openai-model x-nf-request-id x-do-app-origin
`)

// headers: each name of the lists crosses, or does not. Each request of the other checks sends a few,
// and note and send check that nothing else crosses.
func headers(t *testing.T, a *tenant) {
	if n, m := len(toProvider)+len(fromClient), len(toCaller)+len(toOwner)+len(fromProvider); n < 150 || m < 150 {
		t.Errorf("%d names of requests, %d of responses", n, m)
	}
	crossed := map[string]bool{}
	for names := range slices.Chunk(slices.Concat(toProvider, fromClient), 60) { // Envoy takes 100
		var pairs []string
		for _, name := range names {
			pairs = append(pairs, name, "a-value")
		}
		number := fmt.Sprint(a.numbers.Add(1))
		a.send("POST", chat, a.token, strings.NewReader(bodyFor(model, number)), pairs...)
		for name, values := range a.providers.headersOf(number) {
			crossed[strings.ToLower(name)] = crossed[strings.ToLower(name)] || values[0] == "a-value"
		}
	}
	for _, name := range toProvider {
		if !crossed[name] && name != "x-request-id" { // Envoy makes one of its own
			t.Errorf("%s does not reach the provider", name)
		}
	}
	for _, answers := range [][]string{{"names0"}, {"names1"}, {"500", "names0"}, {"500", "names1"}} {
		g := a.call(model, answers...)
		for _, name := range slices.Concat(toCaller, toOwner) {
			if comes := g.header.Get(name) == "1"; comes != (len(answers) == 1 || slices.Contains(toCaller, name)) {
				t.Errorf("%v: the provider's %s comes back: %t", answers, name, comes)
			}
		}
	}
}
