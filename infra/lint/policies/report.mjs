// Prints the policies that were judged.

import { doubts } from './unseen.mjs'

const print = (...lines) => console.log(lines.join('\n'))

function table(head, rows) {
  const all = [head, ...rows].map((row) => row.map(String))
  const widths = head.map((_, i) => Math.max(...all.map((row) => row[i].length)))
  for (const row of all) print(row.map((cell, i) => (i === 0 ? cell.padEnd(widths[i]) : cell.padStart(widths[i]))).join('  '))
}

const caught = (j) => [j.tried, j.tried - j.survivors.length]

/** Prints everything; faults come last. */
export function report({ functions, resources, needed, explained, problems }) {
  table(['function', 'recorded', 'needed besides', 'must be denied', 'mutants', 'caught'],
    functions.map((f) => [f.name, f.recorded.length, f.needed.length - f.recorded.length, f.denied, ...caught(f)]))
  print('')
  table(['resource', 'somebody may', 'nobody may', 'mutants', 'caught'],
    resources.map((r) => [r.name, r.allowed, r.denied, ...caught(r)]))

  print('', 'Granted, and seen by no recorder:')
  const unseen = needed.filter((call) => call.why)
  for (const why of new Set(unseen.map((call) => call.why))) {
    const actions = new Set(unseen.filter((call) => call.why === why).map((call) => call.action))
    print(`  ${[...actions].join(', ')}: ${why}`)
  }
  print('', 'Mutants that no call notices, with reason:')
  for (const [reason, survivors] of explained.reasoned) print(`  ${reason.where} ${reason.sid} (${survivors.length}): ${reason.why}`)
  print('', 'What no simulation can settle:', ...doubts.map((doubt) => `  ${doubt}`))

  if (problems.length > 0) print('', 'WRONG:', ...problems.map((problem) => `  ${problem}`))
  else print('', 'Every recorded call is allowed, everything forbidden is denied, and no policy grants more than it must.')
}
