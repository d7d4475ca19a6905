// The judge must see faults: it gets a function's real policies and calls, and then the same with
// one fault at a time. `infra/lint/iam` names the two files.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import { judgeFunction } from './judge.mjs'
import { readCalls, readStack } from './request.mjs'

const name = 'GetSyncJobFunction'
const calls = readCalls(process.env.CALLS).filter((c) => c.function === name)
const call = calls.find((c) => c.resource === 'AccessTable')

/** The judge's findings, in one text, if the policy and the calls are changed so. */
async function findings(change = () => {}, recorded = calls) {
  const stack = readStack(process.env.STACK)
  change(stack.functions[name].policies.find((p) => p.Statement.some((s) => s.Sid === 'ReadKey')).Statement)
  const { problems, survivors } = await judgeFunction(stack, name, recorded)
  return [...problems, ...survivors.map((s) => `${s.sid}: ${s.change}`)].join('\n')
}
const keyOf = (statements) => statements.find((s) => s.Sid === 'ReadKey')

test('a policy that is right', async () => assert.equal(await findings(), ''))

const wrong = {
  'a call that is not allowed': [/its own policies deny: dynamodb:GetItem AccessTable/, (all) => all.splice(all.indexOf(keyOf(all)), 1)],
  'an action that nothing uses': [/allow: dynamodb:UpdateItem AccessTable/, (all) => { keyOf(all).Action = ['dynamodb:GetItem', 'dynamodb:UpdateItem'] }],
  'a kind of item that nothing reads': [/ReadKey: .* other-kind#\* removed/,
    (all) => keyOf(all).Condition['ForAllValues:StringLike']['dynamodb:LeadingKeys'].push('other-kind#*')],
  'a statement without its Null test': [/allow: dynamodb:GetItem AccessTable .*names no dynamodb:LeadingKeys/, (all) => delete keyOf(all).Condition.Null],
  'a condition key that the action does not have': [/dynamodb:GetItem has no condition key s3:prefix/,
    (all) => { keyOf(all).Condition.StringEquals = { 's3:prefix': 'x' } }],
  'a call that IAM does not have': [/there is no action dynamodb:TransactWriteItems/, undefined, [...calls, { ...call, action: 'dynamodb:TransactWriteItems' }]],
  'no calls at all': [/no call of it was recorded/, undefined, []],
}
for (const [what, [expected, ...changed]] of Object.entries(wrong)) {
  test(what, async () => assert.match(await findings(...changed), expected))
}
