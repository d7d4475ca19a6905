// Judges the policies of the translated template by the recorded calls of the functions.
// infra/cloud/iam runs it.
//     main.mjs STACK.json CALLS.jsonl

import { judge } from './judge.mjs'
import { readCalls, readStack } from './request.mjs'
import { ofFunction, ofResource } from './subjects.mjs'

// Mutants that change no verdict, each with the reason why that is right.
const reasons = [
  [/^StorageKey Logs: action kms:Describe\* removed$/,
    'AWS\'s page about encrypted log groups lists it. DescribeKey has no encryption context, so it is never granted here.'],
  [/^(Sealing|Storage)Key Administer: action .* removed$/,
    'What an administrator may do. None of it uses the key, and nothing of the service does it.'],
]

const [stackFile, callsFile] = process.argv.slice(2)
const stack = readStack(stackFile)
const recorded = readCalls(callsFile)

const functions = await Promise.all(Object.keys(stack.functions).map((name) => ofFunction(stack, name, recorded)))
const needed = functions.flatMap((f) => f.calls).filter((call) => call.right)
const resources = Object.keys(stack.policies).map((name) => ofResource(stack, name, needed))
const judged = await Promise.all([...functions, ...resources].map(judge))

const survivors = judged.flatMap((j) => j.survivors)
const explained = (mutant) => reasons.some(([pattern]) => pattern.test(mutant))
const problems = [
  ...judged.flatMap((j) => j.problems.map((problem) => `${j.name}: ${problem}`)),
  ...survivors.filter((mutant) => !explained(mutant)).map((mutant) => `no call notices, in ${mutant}`),
  ...reasons.filter(([pattern]) => !survivors.some((mutant) => pattern.test(mutant))).map(([pattern]) => `the reason for ${pattern} explains nothing any more`),
]

if (problems.length > 0) {
  console.error(`In template.yaml, by the name of the function, key or bucket whose policies are wrong:\n  ${problems.join('\n  ')}`)
  process.exit(1)
}
for (const { name, allowed, denied, tried, survivors: unnoticed } of judged) {
  console.log(`${name}: ${allowed} calls must be allowed, ${denied} denied; of ${tried} mutants a call notices ${tried - unnoticed.length}`)
}
console.log('\nEvery recorded call is allowed, everything forbidden is denied, and no policy grants more than it must.')
