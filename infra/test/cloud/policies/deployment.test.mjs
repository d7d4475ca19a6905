// Attacks with the rights to deploy, by name: each must be refused. The good calls that they
// resemble must be allowed. ../deployer_test.py refuses every resource of others.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'

import { unseen } from './calls.mjs'
import { mutants } from './mutants.mjs'
import { allowed, leftToIam, readCalls, requestOf } from './simulate.mjs'
import { problemsOfPolicy } from './vocabulary.mjs'

const stack = JSON.parse(readFileSync(process.env.STACK, 'utf8'))
const ids = {
  ACCOUNT: stack.account, REGION: stack.region, STACK: stack.name, REST_ID: 'a1b2c3d4e5', SEALING_KEY: 'sealing-id', STORAGE_KEY: 'storage-id',
  DOMAIN: 'api.example.com', ZONE: 'Z1', BOUNDARY: `boundary-${stack.name}`, ARTIFACTS: 'aws-sam-cli-managed-default-*',
}
const filled = (text) => text.replace(/ACCOUNT|REGION|STACK|REST_ID|SEALING_KEY|STORAGE_KEY|DOMAIN|ZONE|BOUNDARY|ARTIFACTS/g, (name) => ids[name])
const files = Object.fromEntries(['administer', 'boundary', 'deployer', 'service-api', 'service-data', 'verifier'].map((name) =>
  [name, JSON.parse(filled(readFileSync(new URL(`../../../cloud/${name}-policy.json`, import.meta.url), 'utf8')))]))
const service = [files['service-api'], files['service-data']]
const policies = { boundary: [files.boundary], deployer: [files.deployer], service, administer: [...service, files.administer], verifier: [files.verifier] }

const request = ([action, resource, conditions = {}], principal = 'arn:aws:iam::ACCOUNT:role/tester') => ({
  principal: filled(principal), action, arn: filled(resource), account: ids.ACCOUNT,
  context: Object.fromEntries(Object.entries(conditions).map(([key, value]) => [key, Array.isArray(value) ? value.map(filled) : filled(value)])),
})
const may = (who, call) => allowed(request(call), policies[who], leftToIam(ids.ACCOUNT))

const stackArn = 'arn:aws:cloudformation:REGION:ACCOUNT:stack/STACK/1'
const serviceRole = 'arn:aws:iam::ACCOUNT:role/cloudformation-STACK'
const role = 'arn:aws:iam::ACCOUNT:role/STACK/STACK-CreateByokKeyRole-1'
const outside = 'arn:aws:iam::ACCOUNT:role/STACK-admin' // named like the stack, and not in its path
const bound = { 'iam:PermissionsBoundary': 'arn:aws:iam::ACCOUNT:policy/boundary-STACK' }
const managed = (name) => ({ 'iam:PolicyARN': `arn:aws:iam::aws:policy/${name}` })
const key = (id) => `arn:aws:kms:REGION:ACCOUNT:key/${id}`
const record = (name) => ({ 'route53:ChangeResourceRecordSetsNormalizedRecordNames': [name] })
const group = (name) => `arn:aws:logs:REGION:ACCOUNT:log-group:${name}`
const rule = 'arn:aws:events:REGION:ACCOUNT:rule/STACK-KeyChangesRule-1'
const from = (...sources) => ({ 'events:source': sources })

const targets = {
  cloudformation: stackArn, dynamodb: 'arn:aws:dynamodb:REGION:ACCOUNT:table/STACK-AccessTable-1', iam: role, kms: key('SEALING_KEY'),
  lambda: 'arn:aws:lambda:REGION:ACCOUNT:function:STACK-F', logs: `${group('STACK-AccessLogGroup-1')}:log-stream:x`, s3: 'arn:aws:s3:::STACK-filesbucket-1/files/w/f', sts: serviceRole,
}

const good = {
  // ../deployer_test.py asks for SAM's calls of CloudFormation.
  deployer: [
    ['iam:PassRole', serviceRole, { 'iam:PassedToService': 'cloudformation.amazonaws.com' }],
    ['s3:PutObject', 'arn:aws:s3:::aws-sam-cli-managed-default-samclisourcebucket-1/STACK/code.zip'],
  ],
  // What AWS's page about AWSCodeDeployRoleForLambdaLimited names and a canary without hooks needs: no package contains its text.
  boundary: [
    ['lambda:GetAlias', targets.lambda], ['lambda:UpdateAlias', targets.lambda], ['lambda:GetProvisionedConcurrencyConfig', targets.lambda],
    ['cloudwatch:DescribeAlarms', '*'],
  ],
}

const attacks = {
  deployer: {
    'a change set without a service role': ['cloudformation:CreateChangeSet', stackArn],
    'a change set under another role': ['cloudformation:CreateChangeSet', stackArn, { 'cloudformation:RoleArn': 'arn:aws:iam::ACCOUNT:role/admin' }],
    'the service role passed to a function': ['iam:PassRole', serviceRole, { 'iam:PassedToService': 'lambda.amazonaws.com' }],
    'the artifacts\' bucket opened': ['s3:PutBucketPolicy', 'arn:aws:s3:::aws-sam-cli-managed-default-samclisourcebucket-1'],
  },
  service: {
    'a role without a boundary': ['iam:CreateRole', role],
    'a role with another boundary': ['iam:CreateRole', role, { 'iam:PermissionsBoundary': 'arn:aws:iam::aws:policy/AdministratorAccess' }],
    'a policy for a role without a boundary': ['iam:PutRolePolicy', role],
    'AdministratorAccess attached': ['iam:AttachRolePolicy', role, { ...bound, ...managed('AdministratorAccess') }],
    'a boundary replaced': ['iam:PutRolePermissionsBoundary', role, { 'iam:PermissionsBoundary': 'arn:aws:iam::aws:policy/AdministratorAccess' }],
    'the boundary itself widened': ['iam:CreatePolicyVersion', 'arn:aws:iam::ACCOUNT:policy/boundary-STACK'],
    'its own rights widened': ['iam:PutRolePolicy', serviceRole, bound],
    'the deployer\'s rights widened': ['iam:PutRolePolicy', 'arn:aws:iam::ACCOUNT:role/deploy-STACK', bound],
    'a role passed to a server': ['iam:PassRole', role, { 'iam:PassedToService': 'ec2.amazonaws.com' }],
    'an administrator\'s trust changed': ['iam:UpdateAssumeRolePolicy', outside],
    'an administrator passed to a function': ['iam:PassRole', outside, { 'iam:PassedToService': 'lambda.amazonaws.com' }],
    'an administrator deleted': ['iam:DeleteRole', outside],
    'another record of the zone changed': ['route53:ChangeResourceRecordSets', 'arn:aws:route53:::hostedzone/ZONE', record('www.example.com')],
    'an unnamed record of the zone changed': ['route53:ChangeResourceRecordSets', 'arn:aws:route53:::hostedzone/ZONE'],
    'the region\'s logging role changed': ['apigateway:PATCH', 'arn:aws:apigateway:REGION::/account'],
    'every event of the account overheard': ['events:PutRule', rule],
    'events of another service overheard': ['events:PutRule', rule, from('aws.kms', 'aws.signin')],
    'a role passed to the gateway': ['iam:PassRole', role, { 'iam:PassedToService': 'apigateway.amazonaws.com' }],
    'the gateway\'s rights to all logs attached': ['iam:AttachRolePolicy', role, { ...bound, ...managed('service-role/AmazonAPIGatewayPushToCloudWatchLogs') }],
    'the account\'s log policies removed': ['logs:DeleteResourcePolicy', '*'],
  },
}

// The actions that a role may not have on anything of the stack. A deployer acts as any role under the boundary. If he could write
// a key's or the bucket's policy, he would name that role's session in it: IAM does not apply a boundary's implicit denial to a session
// that a resource's policy names.
const never = {
  deployer: ['cloudformation:DeleteStack', 'cloudformation:SetStackPolicy', 'cloudformation:UpdateStack', 'cloudformation:UpdateTerminationProtection',
    'dynamodb:GetItem', 'iam:AttachRolePolicy', 'iam:CreateRole', 'kms:PutKeyPolicy', 'lambda:UpdateFunctionCode', 'sts:AssumeRole'],
  service: ['dynamodb:ExportTableToPointInTime', 'dynamodb:GetItem', 'dynamodb:PutResourcePolicy', 'iam:CreateUser', 'iam:DeleteRolePermissionsBoundary',
    'kms:Decrypt', 'kms:DisableKey', 'kms:PutKeyPolicy', 'kms:ScheduleKeyDeletion', 'lambda:InvokeFunction', 'logs:DeleteLogGroup', 'logs:GetLogEvents',
    's3:GetObject', 's3:PutBucketPolicy'],
  verifier: ['kms:Decrypt', 's3:GetObject'],
  // The most that a role of the stack can have, with any policy. The test of the boundary refuses other actions.
  boundary: ['kms:Decrypt'],
}
const purpose = { 'kms:EncryptionContext:purpose': 'signalbox/credential' }
for (const [who, listed] of Object.entries(never)) {
  for (const action of listed) test(`the ${who} may not: ${action}`, () => assert.ok(!may(who, [action, targets[action.split(':')[0]], { ...bound, ...purpose }])))
}

for (const [who, calls] of Object.entries(good)) {
  for (const call of calls) test(`the ${who} may: ${call[0]}`, () => assert.ok(may(who, call)))
}
for (const [who, listed] of Object.entries(attacks)) {
  for (const [name, call] of Object.entries(listed)) test(`the ${who} may not: ${name}`, () => assert.ok(!may(who, call)))
}

const administrator = 'arn:aws:iam::ACCOUNT:role/administer-STACK'
const takeovers = [
  ['iam:PassRole', administrator, { 'iam:PassedToService': 'cloudformation.amazonaws.com' }], ['iam:PutRolePolicy', administrator, bound],
  ['cloudformation:CreateChangeSet', stackArn, { 'cloudformation:RoleArn': administrator }],
]
for (const who of ['deployer', 'service', 'verifier']) {
  for (const call of takeovers) test(`the ${who} may not have the administrator's role: ${call[0]}`, () => assert.ok(!may(who, call)))
}

test('infra/cloud/boundary-policy.json allows the calls of the functions and of CodeDeploy, and no other action', () => {
  const names = Object.keys(stack.functions).filter((name) => name !== 'Router')
  const recorded = (name) => readCalls(process.env.CALLS).filter((call) => call.function === name)
  const calls = names.flatMap((name) => [...recorded(name), ...unseen(stack, name, recorded(name))])
  assert.deepEqual([...new Set(calls.map((call) => call.function))], names)
  const requests = calls.map((call) => requestOf(stack, call))
  const denied = (policy) => (one) => !allowed(one, [policy], leftToIam(stack.account))
  const refused = requests.filter(denied(files.boundary))
  assert.deepEqual([...new Set(refused.map(({ action, arn }) => `${action} on ${arn}`))], [],
    'the boundary refuses these calls. Change the boundary of an existing stack before you deploy: else requests that need these calls get 500')
  const needed = [...requests, ...good.boundary.map((call) => request(call))]
  const parts = [...mutants(files.boundary)].filter(({ change }) => /^(statement|action|resource) /.test(change))
  assert.deepEqual(parts.filter(({ policy }) => !needed.some(denied(policy))).map(({ statement, change }) => `${statement.Sid}: ${change}`), [],
    'no call needs these parts of the boundary')
})

for (const [name, policy] of Object.entries(files)) {
  test(`AWS knows the actions and condition keys of infra/cloud/${name}-policy.json`, async () => assert.deepEqual(await problemsOfPolicy(policy), []))
}
