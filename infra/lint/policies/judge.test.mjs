// The judge must see what is wrong: a small stack, right in every part, and then
// with one thing wrong at a time.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import { judgeFunction } from './judge.mjs'

const account = '111122223333'
const arns = Object.fromEntries(['AccessTable', 'ControlTable', 'CredentialsTable', 'SyncJobsTable'].map((id) =>
  [id, `arn:aws:dynamodb:eu-central-1:${account}:table/signalbox-${id}`]))
arns.StorageKey = `arn:aws:kms:eu-central-1:${account}:key/signalbox-StorageKey`
arns.GetSyncJobLogGroup = `arn:aws:logs:eu-central-1:${account}:log-group:signalbox-GetSyncJobLogGroup:*`

const read = (table, kind) => ({
  Sid: table, Effect: 'Allow', Action: 'dynamodb:GetItem', Resource: arns[table],
  Condition: {
    'ForAllValues:StringLike': { 'dynamodb:LeadingKeys': [kind] },
    Null: { 'dynamodb:LeadingKeys': 'false' },
  },
})
const statements = () => [
  read('AccessTable', 'key#*'),
  read('SyncJobsTable', 'job#*'),
  {
    Sid: 'OpenTables', Effect: 'Allow', Action: 'kms:Decrypt', Resource: arns.StorageKey,
    Condition: { StringEquals: {
      'kms:ViaService': 'dynamodb.eu-central-1.amazonaws.com',
      'kms:EncryptionContext:aws:dynamodb:tableName': ['signalbox-AccessTable', 'signalbox-SyncJobsTable'],
    } },
  },
  { Sid: 'WriteLog', Effect: 'Allow', Action: ['logs:CreateLogStream', 'logs:PutLogEvents'], Resource: arns.GetSyncJobLogGroup },
  { Sid: 'WriteTraces', Effect: 'Allow', Action: ['xray:PutTelemetryRecords', 'xray:PutTraceSegments'], Resource: '*' },
]
const get = (resource, kind) => ({
  function: 'GetSyncJobFunction', action: 'dynamodb:GetItem', resource, conditions: { 'dynamodb:LeadingKeys': [kind] },
})
const calls = [get('AccessTable', 'key#*'), get('SyncJobsTable', 'job#*')]

/** What the judge finds, in one text. */
async function findings(Statement, recorded = calls) {
  const stack = {
    account, arns, region: 'eu-central-1', parameters: {},
    functions: { GetSyncJobFunction: {
      role: `arn:aws:iam::${account}:role/r`, policies: [{ Version: '2012-10-17', Statement }],
    } },
    policies: { StorageKey: {
      Version: '2012-10-17',
      Statement: [{ Effect: 'Allow', Principal: { AWS: `arn:aws:iam::${account}:root` }, Action: 'kms:*', Resource: '*' }],
    } },
  }
  const { problems, survivors } = await judgeFunction(stack, 'GetSyncJobFunction', recorded)
  return [...problems, ...survivors.map((s) => `${s.sid}: ${s.change}`)].join('\n')
}

test('a policy that is right', async () => {
  assert.equal(await findings(statements()), '')
})

test('a call that is not allowed', async () => {
  assert.match(await findings(statements().slice(1)), /its own policies deny: dynamodb:GetItem AccessTable/)
})

test('an action that nothing uses', async () => {
  const [first, ...others] = statements()
  first.Action = ['dynamodb:GetItem', 'dynamodb:UpdateItem']
  assert.match(await findings([first, ...others]), /allow: dynamodb:UpdateItem AccessTable/)
})

test('a kind of item that nothing reads', async () => {
  const [, ...others] = statements()
  const wide = read('AccessTable', 'key#*')
  wide.Condition['ForAllValues:StringLike']['dynamodb:LeadingKeys'].push('other-kind#*')
  assert.match(await findings([wide, ...others]), /AccessTable: .* other-kind#\* removed/)
})

test('a statement without its Null test', async () => {
  const [first, ...others] = statements()
  delete first.Condition.Null
  assert.match(await findings([first, ...others]), /allow: dynamodb:GetItem AccessTable .*names no item/)
})

test('a condition key that the action does not have', async () => {
  const [first, ...others] = statements()
  first.Condition.StringEquals = { 's3:prefix': 'x' }
  assert.match(await findings([first, ...others]), /dynamodb:GetItem has no condition key s3:prefix/)
})

test('a call that IAM does not know', async () => {
  const odd = { ...calls[0], action: 'dynamodb:TransactWriteItems' }
  assert.match(await findings(statements(), [...calls, odd]), /there is no action dynamodb:TransactWriteItems/)
})

test('no calls at all', async () => {
  assert.match(await findings(statements(), []), /no call of it was recorded/)
})
