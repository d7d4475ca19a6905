"""The gateway's own responses, and its logs.

An error text of the gateway may quote the Authorization header, so only the variables listed
here may be used.
"""

import json
import re
import unittest

from stack import Stack

# Every type that API Gateway documents for a REST API.
TYPES = {
    "ACCESS_DENIED", "API_CONFIGURATION_ERROR", "AUTHORIZER_CONFIGURATION_ERROR",
    "AUTHORIZER_FAILURE", "BAD_REQUEST_BODY", "BAD_REQUEST_PARAMETERS",
    "DEFAULT_4XX", "DEFAULT_5XX", "EXPIRED_TOKEN", "INTEGRATION_FAILURE",
    "INTEGRATION_TIMEOUT", "INVALID_API_KEY", "INVALID_SIGNATURE",
    "MISSING_AUTHENTICATION_TOKEN", "QUOTA_EXCEEDED", "REQUEST_TOO_LARGE",
    "RESOURCE_NOT_FOUND", "THROTTLED", "UNAUTHORIZED", "UNSUPPORTED_MEDIA_TYPE",
    "WAF_FILTERED",
}

# The caller chooses none of these values.
LOGGABLE = {
    "error.responseType", "httpMethod", "identity.sourceIp", "integration.latency",
    "integration.requestId", "integration.status", "protocol", "requestId",
    "requestTime", "resourcePath", "responseLatency", "responseLength", "status",
    "tlsVersion", "waf.status",
}

# The response of each status: the message, and the headers and metadata that only it has.
ENVELOPES = {
    400: ("Invalid request parameters", {}, {"issues"}),
    401: ("Missing Authentication header", {"WWW-Authenticate": "'Bearer'"}, {"reason"}),
    403: ("Request refused", {}, set()),
    404: ("Resource not found", {}, set()),
    429: ("Rate limit exceeded", {"Retry-After": "'1'"}, set()),
    500: ("Internal Server Error", {}, set()),
}


def context_variables(text: str) -> set[str]:
    return set(re.findall(r"\$context\.([A-Za-z.]+)", text))


class GatewayResponses(unittest.TestCase):
    def test_each_type_is_the_envelope_without_a_part_of_the_request(self):
        responses = Stack().properties("Api")["Body"]["x-amazon-apigateway-gateway-responses"]
        self.assertEqual(set(responses), TYPES)
        for kind, response in responses.items():
            with self.subTest(kind):
                (media_type, template), = response["responseTemplates"].items()
                error = json.loads(template)["error"]
                message, headers, metadata = ENVELOPES[error["code"]]
                headers = {"X-Request-Id": "context.requestId", "Cache-Control": "'no-store'"} | headers
                self.assertEqual(response["statusCode"], str(error["code"]))
                self.assertEqual(response["responseParameters"], {f"gatewayresponse.header.{name}": value for name, value in headers.items()})
                self.assertEqual((media_type, error["message"], set(error["metadata"])), ("application/json", message, {"request_id"} | metadata))
                self.assertEqual(error["metadata"]["request_id"], "$context.requestId")
                self.assertEqual(template.count("$"), 1)


class Transport(unittest.TestCase):
    def test_tls_is_forward_secret_and_post_quantum_over_ipv4_and_ipv6(self):
        stack = Stack(DomainName="signalbox.example.com", CertificateArn="arn")
        for name in ("Api", "Domain"):
            properties = stack.properties(name)
            self.assertEqual(properties["SecurityPolicy"], "SecurityPolicy_TLS13_1_2_PFS_PQ_2025_09")
            self.assertEqual(properties["EndpointAccessMode"], "STRICT")
            self.assertEqual(properties["EndpointConfiguration"]["IpAddressType"], "dualstack")
        private = Stack(PrivateVpcEndpoint="vpce-0123abcd").properties("Api")
        self.assertEqual(private["EndpointConfiguration"]["Types"] + private["EndpointConfiguration"]["VpcEndpointIds"], ["PRIVATE", "vpce-0123abcd"])
        (statement,) = private["Policy"]["Statement"]
        self.assertEqual(statement["Condition"], {"StringEquals": {"aws:SourceVpce": "vpce-0123abcd"}})
        records = [r["Properties"] for r in stack.of_type("AWS::Route53::RecordSet").values()]
        self.assertEqual({r["Type"] for r in records}, {"A", "AAAA"})
        self.assertEqual(records[0]["AliasTarget"], records[1]["AliasTarget"])


class Logs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.stack = Stack(Firewall="On")

    def test_the_access_log_is_json_without_texts_that_the_caller_chooses(self):
        form = self.stack.properties("ApiStage")["AccessLogSetting"]["Format"]
        json.loads(form)
        self.assertLessEqual(context_variables(form), LOGGABLE)
        self.assertEqual(form.count("$"), len(context_variables(form)))

    def test_no_method_traces_data(self):
        for settings in self.stack.properties("ApiStage")["MethodSettings"]:
            self.assertEqual(settings["LoggingLevel"], "ERROR")
            self.assertIs(settings["DataTraceEnabled"], False)

    def test_the_firewall_leaves_secrets_out(self):
        redacted = self.stack.properties("FirewallLogging")["RedactedFields"]
        headers = [{"SingleHeader": {"Name": name}} for name in ("authorization", "idempotency-key")]
        for field in [*headers, {"UriPath": {}}, {"QueryString": {}}]:
            self.assertIn(field, redacted)
        # A sampled request shows its headers: AWS redacts only the logs.
        sampled = re.findall(r'"SampledRequestsEnabled": (\w+)', json.dumps(self.stack.properties("WebAcl")))
        self.assertEqual(set(sampled), {"false"})
