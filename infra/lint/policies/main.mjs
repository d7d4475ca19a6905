// Judges the policies of the translated template by the calls that the functions
// were seen to make. Run it by infra/lint/iam.
//     main.mjs STACK.json CALLS.jsonl

import { explain } from './reasons.mjs'
import { judgeFunction } from './judge.mjs'
import { judgeResource } from './resource.mjs'
import { readCalls, readStack } from './request.mjs'
import { report } from './report.mjs'

const [stackFile, callsFile] = process.argv.slice(2)
const stack = readStack(stackFile)
const calls = readCalls(callsFile)

const functions = []
for (const name of Object.keys(stack.functions)) functions.push(await judgeFunction(stack, name, calls))
const needed = functions.flatMap((f) => f.needed)
const resources = []
for (const name of Object.keys(stack.policies)) resources.push(await judgeResource(stack, name, needed))

const judged = [...functions, ...resources]
const explained = explain(judged.flatMap((j) => j.survivors))
const problems = [
  ...judged.flatMap((j) => j.problems.map((problem) => `${j.name}: ${problem}`)),
  ...explained.unexplained.map((s) => `${s.where}: no call notices, in ${s.sid}: ${s.change}`),
  ...explained.stale.map((r) => `${r.where}: the reason given for ${r.sid} ${r.change} explains nothing any more`),
]
report({ functions, resources, needed, explained, problems })
process.exitCode = problems.length > 0 ? 1 : 0
