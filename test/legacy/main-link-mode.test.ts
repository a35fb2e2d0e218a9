import t from 'tap'
import { MainLinkMode } from '../../src/legacy/main-link-mode.js'

t.test('two main links lost right after a tool link\'s hello put tools on the main link for good', async (t) => {
  const mode = new MainLinkMode(false, 1_000)
  mode.toolHello(0)
  mode.mainDown(999)
  mode.mainUp()
  t.equal(mode.on, false, 'once can be chance')
  mode.toolHello(2_000)
  mode.mainDown(2_500)
  mode.mainUp()
  t.equal(mode.on, true)
  mode.mainDown(900_000)
  mode.mainUp()
  t.equal(mode.on, true)
})

t.test('a main link that is lost while a tool link is being dialled counts as lost for it', async (t) => {
  const mode = new MainLinkMode(false, 1_000)
  for (const at of [0, 10_000]) {
    mode.toolDialled(at)
    mode.mainDown(at + 5)
    mode.mainUp()
  }
  t.equal(mode.on, true)
})

t.test('a connector that dies with all its links says nothing, whichever end is seen first', async (t) => {
  const mode = new MainLinkMode(false, 1_000)
  for (const at of [0, 1_000, 2_000, 3_000]) {
    mode.toolHello(at)
    mode.mainDown(at + 100)
    mode.toolLinkEnded(at + 101)
    mode.mainUp()
    mode.toolHello(at + 500)
    mode.toolLinkEnded(at + 600)
    mode.mainDown(at + 601)
    mode.mainUp()
  }
  t.equal(mode.on, false)
})

t.test('a main link that is lost later has nothing to do with tool links', async (t) => {
  const mode = new MainLinkMode(false, 1_000)
  for (const at of [0, 10_000, 20_000]) {
    mode.toolHello(at)
    mode.mainDown(at + 1_000)
    mode.mainUp()
  }
  t.equal(mode.on, false)
})

t.test('connector_channel_not_owned holds until the next reconnect', async (t) => {
  const mode = new MainLinkMode(false, 1_000)
  mode.notOwned()
  t.equal(mode.on, true)
  mode.mainUp()
  t.equal(mode.on, false)
})

t.test('three refused tool links in a row mean that only one link is admitted', async (t) => {
  const mode = new MainLinkMode(false, 1_000)
  mode.toolDialFailed('refused')
  mode.toolDialFailed('refused')
  mode.toolHello(0)
  mode.toolDialFailed('refused')
  mode.toolDialFailed('refused')
  t.equal(mode.on, false)
  mode.toolDialFailed('refused')
  t.equal(mode.on, true)
})

t.test('an unreachable connector says nothing about links', async (t) => {
  const mode = new MainLinkMode(false, 1_000)
  for (let i = 0; i < 10; i += 1) mode.toolDialFailed('unreachable')
  t.equal(mode.on, false)
})

t.test('no tool links in the configuration: always on the main link', async (t) => {
  t.equal(new MainLinkMode(true, 1_000).on, true)
})
