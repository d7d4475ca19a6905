// Judges the policies of the translated template and the boundary of its roles. Each call must get its right verdict, and each
// part of a policy must matter to the verdict on some call. infra/test/cloud/iam runs it.
//     main.mjs STACK.json CALLS.jsonl

import { readFileSync } from 'node:fs'

import { forbidden, neighbours, unseen } from './calls.mjs'
import { claims } from './claims.mjs'
import { mutants } from './mutants.mjs'
import { allowed, describe, everything, leftToIam, readCalls, requestOf, scopeOf } from './simulate.mjs'
import { problemsOfCall } from './vocabulary.mjs'

// Mutants that change no verdict, each with the reason why that is right.
const reasons = [
  [/^StorageKey Logs: action kms:Describe\* removed$/,
    'AWS\'s page about encrypted log groups lists it. DescribeKey has no encryption context, so it is never granted here.'],
  [/^(Sealing|Storage)Key Administer: action .* removed$/,
    'What an administrator may do. None of it uses the key, and nothing of the service does it.'],
]

const [stackFile, callsFile] = process.argv.slice(2)
const stack = JSON.parse(readFileSync(stackFile, 'utf8')) // as deployed.py describes it
const recorded = readCalls(callsFile)

const functions = await Promise.all(Object.keys(stack.functions).map(ofFunction))
const needed = functions.flatMap((f) => f.calls).filter((call) => call.right)
const judged = await Promise.all([...functions, ...Object.keys(stack.policies).map(ofResource), ofBoundary()].map(judge))

const survivors = judged.flatMap((j) => j.survivors)
const problems = [
  ...judged.flatMap((j) => j.problems.map((problem) => `${j.name}: ${problem}`)),
  ...survivors.filter((mutant) => !reasons.some(([pattern]) => pattern.test(mutant))).map((mutant) => `no call notices, in ${mutant}`),
  ...reasons.filter(([pattern]) => !survivors.some((mutant) => pattern.test(mutant))).map(([pattern]) => `the reason for ${pattern} explains nothing any more`),
]
if (problems.length > 0) {
  console.error(`In template.yaml, or in infra/cloud/boundary-policy.json, by the name of the function, key or bucket whose policies are wrong:\n  ${problems.join('\n  ')}`)
  process.exit(1)
}
for (const { name, calls, tried, survivors: unnoticed } of judged) {
  const right = calls.filter((call) => call.right).length
  console.log(`${name}: ${right} calls must be allowed, ${calls.length - right} denied; of ${tried} mutants a call notices ${tried - unnoticed.length}`)
}
console.log('\nEvery recorded call is allowed, everything forbidden is denied, and no policy grants more than it must.')

// ---- The policies to judge: each with the calls that must be allowed or denied, and the ways to judge a call.

/** The policies of a function's role. */
async function ofFunction(name) {
  const own = recorded.filter((call) => call.function === name)
  if (own.length === 0) throw new Error(`no call of ${name} was recorded`)
  const needed = [...own, ...unseen(stack, name, own)]
  const scopes = new Set(needed.map(scopeOf))
  const others = recorded.filter((call) => call.function !== name && !scopes.has(scopeOf(call)))
    .map((call) => ({ ...call, function: name, why: `does what ${call.function} does` }))
  const denied = [...forbidden(stack, name, needed), ...others, ...await neighbours(stack, needed)]
  return {
    name,
    policies: stack.functions[name].policies,
    calls: [...needed.map((call) => ({ ...call, right: true })), ...denied.map((call) => ({ ...call, right: false }))],
    verdicts: (call, policies) => {
      const request = requestOf(stack, call)
      // This assumes that another stack's key leaves the decision to IAM.
      const resource = stack.policies[call.resource]
      return [
        ['its own policies', allowed(request, policies, leftToIam(stack.account))],
        ...(resource ? [['all policies', allowed(request, policies, resource)]] : []),
      ]
    },
  }
}

/** The policy of a key or bucket, judged by claims and by the calls that functions need. */
function ofResource(name) {
  const made = claims(stack)[name]
  if (!made) throw new Error(`there are no claims about ${name}`)
  return {
    name,
    policies: [stack.policies[name]],
    calls: [...made, ...needed.filter((call) => call.resource === name)],
    verdicts: (call, [policy]) => {
      // The caller's own policies allow everything. They allow nothing if the resource policy must
      // allow the call alone, or if a service makes it: services have no policies.
      const isService = !call.function && !call.who.startsWith('arn:')
      const identity = isService || call.alone ? [] : [everything]
      const under = (part) => allowed(requestOf(stack, call), identity, part)
      if (!call.twice) return [['the policy', under(policy)]]
      return ['Allow', 'Deny'].map((effect) => [`its statements with ${effect}`, under(half(policy, effect))])
    },
  }
}

/** The boundary allows what the functions and CodeDeploy call, and has no other action. */
function ofBoundary() {
  const who = `arn:aws:iam::${stack.account}:role/${stack.name}/x`
  const call = (action, resource, right) => ({ who, action, resource, conditions: {}, right })
  // What AWS's page about AWSCodeDeployRoleForLambdaLimited names and a canary without hooks needs: no package contains its text.
  const codeDeploy = ['GetAlias', 'GetProvisionedConcurrencyConfig', 'UpdateAlias'].map((name) => call(`lambda:${name}`, 'GetSyncJobFunction', true))
  return {
    name: 'boundary',
    policies: [stack.boundary],
    calls: [...needed.filter((one) => one.function !== 'Router'), ...codeDeploy, call('cloudwatch:DescribeAlarms', '*', true),
      call('kms:Decrypt', 'StorageKey', false), call('kms:GenerateDataKey', 'SealingKey', false)],
    verdicts: (one, policies) => [['the boundary, which a stack that exists needs before the deployment: else requests get 500',
      allowed(requestOf(stack, one), policies, leftToIam(stack.account))]],
  }
}

/** The policy with only its allowing statements, or only its denying ones. */
function half(policy, effect) {
  const statements = policy.Statement.filter((s) => s.Effect === effect)
  const open = { Effect: 'Allow', Principal: '*', Action: '*', Resource: '*' }
  return { ...policy, Statement: effect === 'Deny' ? [open, ...statements] : statements }
}

/** Adds the problems as text, the number of mutants, and those that no call notices. */
async function judge({ name, policies, calls, verdicts }) {
  const problems = (await Promise.all(calls.map(problemsOfCall))).flat()
  for (const call of calls) {
    for (const [by] of verdicts(call, policies).filter(([, verdict]) => verdict !== call.right)) {
      const why = call.why ?? (call.who ? 'a claim' : call.right ? 'recorded' : 'a neighbour of a recorded call')
      problems.push(`${call.right ? 'denied' : 'allowed'} by ${by}: ${call.who ?? call.function} ${describe(call)} (${why})`)
    }
  }
  const holds = (call, changed) => verdicts(call, changed).every(([, verdict]) => verdict === call.right)
  const sound = calls.filter((call) => holds(call, policies))
  const tried = policies.flatMap((policy, i) => [...mutants(policy)].map((mutant) => ({ ...mutant, policies: policies.with(i, mutant.policy) })))
  const survivors = tried.filter((mutant) => sound.every((call) => holds(call, mutant.policies)))
  return { name, calls, problems, tried: tried.length, survivors: survivors.map((m) => `${name} ${m.statement.Sid}: ${m.change}`) }
}
