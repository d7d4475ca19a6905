// Reads {account, policies, calls} and prints the names of the calls that the policies deny. A
// call is an action, an ARN and condition keys; deployer_test.py derives them from the template.

import { readFileSync } from 'node:fs'

import { allowed, leftToIam } from './simulate.mjs'

const { account, policies, calls } = JSON.parse(readFileSync(0, 'utf8'))
const statements = policies.flatMap((policy) => policy.Statement)
const names = (action) => ({ Action }) => [Action].flat().some((one) => new RegExp(`^${one.replaceAll('*', '.*')}$`, 'i').test(action))

/** The simulator reads only the statements that name the action: that takes a third of the time. */
function may([action, arn, context]) {
  const policy = { Version: '2012-10-17', Statement: statements.filter(names(action)) }
  if (policy.Statement.length === 0) return false
  return allowed({ principal: `arn:aws:iam::${account}:role/deployer`, action, arn, account, context }, [policy], leftToIam(account))
}

console.log(JSON.stringify(Object.keys(calls).filter((name) => !may(calls[name]))))
