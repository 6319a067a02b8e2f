"""The built-in demo corpus: synthetic Chinese-English pairs, made by a small grammar.

Nothing here was collected: the lexicon and the rules below are this project's own text, so the corpus
needs no download and no licence. Every phrase is a small value that knows both of its renderings, and
every construction (a function registered by `construction`) puts such phrases together on both sides at
once. The English of a sentence is a function of its Chinese: where Chinese may leave tense, number,
definiteness or gender open, the grammar always writes the word that settles it (昨天, 了, 一, 这, 些, 她).
`_sentences` checks that promise, and raises when a new rule breaks it.

A split is decided by the English sentence, so that neither side of a held-out pair, with or without its
final 。, is ever seen in training. All choices come from `Random.random`, the one method whose sequence
Python promises to keep, so the corpus is the same bytes everywhere.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

SPLITS = ("train", "valid", "test")
HELD_OUT_SIZE = 500

# Shown to users as a sentence the model has never met; so it may not even begin a longer one.
UNSEEN = ("我有一只猫", "I have a cat")

Pair = tuple[str, str]
T = TypeVar("T")

# ---------------------------------------------------------------------------------------------- lexicon

# Nouns by kind: Chinese, measure word, English[=irregular plural]; "cup~tea" is measured in cups.
NOUNS = """
pet: 猫 只 cat; 狗 只 dog; 鸟 只 bird; 兔子 只 rabbit; 乌龟 只 turtle; 鸡 只 chicken; 鸭子 只 duck
pet: 羊 只 sheep=sheep; 马 匹 horse; 牛 头 cow; 猪 头 pig; 鱼 条 fish=fish
wild: 老虎 只 tiger; 猴子 只 monkey; 熊猫 只 panda; 狐狸 只 fox; 狼 只 wolf=wolves; 老鼠 只 mouse=mice
wild: 大象 头 elephant; 狮子 头 lion; 熊 头 bear; 蛇 条 snake
job: 老师 位 teacher; 医生 位 doctor; 护士 位 nurse; 律师 位 lawyer; 工程师 位 engineer; 作家 位 writer
job: 科学家 位 scientist; 画家 位 painter; 演员 位 actor; 经理 位 manager; 记者 位 journalist
job: 学生 个 student; 司机 个 driver; 警察 个 police officer; 工人 个 worker; 农民 个 farmer
job: 歌手 个 singer; 厨师 个 chef
mate: 朋友 个 friend; 同学 个 classmate; 同事 个 colleague; 邻居 个 neighbor
boy: 男孩 个 boy; 男人 个 man=men
girl: 女孩 个 girl; 女人 个 woman=women
folk: 孩子 个 child=children; 客人 位 guest; 人 个 person=people
brother: 哥哥 个 older brother; 弟弟 个 younger brother; 儿子 个 son; 叔叔 个 uncle
sister: 姐姐 个 older sister; 妹妹 个 younger sister; 女儿 个 daughter; 阿姨 个 aunt
father: 爸爸 个 father; 爷爷 个 grandfather
mother: 妈妈 个 mother; 奶奶 个 grandmother
fruit: 苹果 个 apple; 橘子 个 orange; 香蕉 根 banana; 梨 个 pear; 桃子 个 peach; 西瓜 个 watermelon
fruit: 西红柿 个 tomato=tomatoes; 土豆 个 potato=potatoes
dish: 蛋糕 个 cake; 三明治 个 sandwich; 汉堡 个 hamburger; 包子 个 steamed bun; 饺子 个 dumpling
dish: 饼干 块 cookie; 鸡蛋 个 egg
meal: 米饭 碗 bowl~rice; 面条 碗 bowl~noodles; 面包 片 slice~bread; 豆腐 块 piece~tofu
meal: 巧克力 块 piece~chocolate; 牛肉 块 piece~beef
drink: 水 杯 cup~water; 茶 杯 cup~tea; 咖啡 杯 cup~coffee; 牛奶 杯 cup~milk; 果汁 瓶 bottle~juice
drink: 可乐 瓶 bottle~cola; 啤酒 瓶 bottle~beer
book: 书 本 book; 小说 本 novel; 词典 本 dictionary; 杂志 本 magazine; 报纸 份 newspaper
letter: 信 封 letter; 电子邮件 封 email
pic: 照片 张 photo; 地图 张 map; 画 张 painting
show: 电影 部 movie; 比赛 场 match; 节目 个 program; 演出 场 performance
song: 歌 首 song; 民歌 首 folk song
cloth: 衬衫 件 shirt; 毛衣 件 sweater; 大衣 件 coat; 外套 件 jacket; 裙子 条 skirt; 连衣裙 条 dress
cloth: 鞋 双 pair~shoes; 袜子 双 pair~socks
worn: 帽子 顶 hat; 围巾 条 scarf=scarves; 手表 块 watch; 眼镜 副 pair~glasses; 手套 副 pair~gloves
bike: 自行车 辆 bicycle; 摩托车 辆 motorcycle
car: 汽车 辆 car; 公共汽车 辆 bus; 出租车 辆 taxi; 卡车 辆 truck
small: 钢笔 支 pen; 铅笔 支 pencil; 钥匙 把 key; 雨伞 把 umbrella; 刀 把 knife=knives; 球 个 ball
small: 钱包 个 wallet; 玩具 个 toy; 礼物 件 gift; 票 张 ticket; 护照 本 passport
ware: 杯子 个 cup; 瓶子 个 bottle; 盘子 个 plate; 碗 个 bowl; 镜子 面 mirror
bag: 包 个 bag; 箱子 个 suitcase; 盒子 个 box
gadget: 手机 部 phone; 电脑 台 computer; 相机 台 camera; 收音机 台 radio
seat: 椅子 把 chair; 沙发 张 sofa; 床 张 bed
furniture: 桌子 张 table; 灯 盏 lamp; 电视 台 television; 冰箱 台 refrigerator; 钢琴 架 piano; 书架 个 bookshelf
plant: 花 朵 flower; 树 棵 tree
door: 门 扇 door; 窗户 扇 window
"""

# Names a set of kinds once, wherever a table or a construction says which nouns make sense.
GROUPS = {
    "animal": "pet wild",
    "sibling": "brother sister",
    "kin": "brother sister father mother",
    "man": "job boy girl folk",
    "person": "job mate boy girl folk brother sister father mother name",
    "food": "fruit dish",
    "goods": "book cloth worn bike small ware bag gadget seat furniture",
}

# Adjectives: Chinese, form before a noun ("-" if none), English, [comparative]: kinds described.
ADJECTIVES = """
大 大 big bigger: animal fruit bag seat city
小 小 small smaller: animal fruit bag seat ware city
新 新 new newer: book cloth worn bike car gadget seat furniture small
旧 旧 old older: book cloth worn bike car gadget seat furniture
贵 - expensive: fruit goods car
便宜 便宜的 cheap cheaper: fruit goods car
漂亮 漂亮的 beautiful: pet cloth worn car ware bag girl sister plant pic city
可爱 可爱的 cute cuter: pet boy girl
危险 危险的 dangerous: wild
重 - heavy heavier: bag seat furniture
新鲜 新鲜的 fresh fresher: fruit
好吃 好吃的 delicious: food meal
甜 - sweet sweeter: fruit
热 - hot hotter: meal drink city
冷 - cold colder: city
有趣 有趣的 interesting: book show letter
无聊 无聊的 boring: book show
有用 有用的 useful: book gadget
重要 重要的 important: letter book
有名 有名的 famous: show song city job
好听 好听的 pleasant: song
难 - difficult: language
容易 - easy easier: language
长 - long longer: letter show
舒服 舒服的 comfortable: cloth seat
干净 干净的 clean cleaner: cloth ware car bag city
脏 - dirty dirtier: cloth ware car bag bike
安静 安静的 quiet quieter: pet city
快 - fast faster: car bike
胖 - fat fatter: pet
高 - tall taller: person plant
瘦 - thin thinner: person
聪明 聪明的 smart smarter: person
年轻 年轻的 young younger: person
善良 善良的 kind kinder: person
勇敢 勇敢的 brave braver: person
友好 友好的 friendly friendlier: person
认真 认真的 serious: person
强壮 - strong stronger: job brother boy name
懒 - lazy lazier: person
"""
# States pass, so only these take 昨天; the rest of the table is as above.
STATES = """
忙 - busy busier: person
累 - tired: person
高兴 - happy happier: person
难过 - sad sadder: person
生气 - angry angrier: person
饿 - hungry hungrier: person
渴 - thirsty thirstier: person
紧张 - nervous: person
兴奋 - excited: person
"""
COLORS = """
红色 红色的 red: cloth worn bike car small seat ware bag
蓝色 蓝色的 blue: cloth worn bike car small seat ware bag
绿色 绿色的 green: cloth worn bike car small seat ware bag
黄色 黄色的 yellow: cloth worn bike car small seat ware bag
白色 白色的 white: pet cloth worn car seat ware bag
黑色 黑色的 black: pet cloth worn car seat ware bag
"""
# 有点 and 太...了 complain; with these they sound natural.
UNWELCOME = set("贵 旧 重 热 冷 无聊 难 长 脏 瘦 懒 忙 累 难过 生气 饿 渴 紧张".split())

# Deeds done to a thing: Chinese, English: uses, kinds of object. The uses are d (a matter of a day),
# l (of any time), g (takes 过), p (takes 在), h (a habit).
DEEDS = """
吃 eat: dgph food meal
喝 drink: dgph drink
看 read: lgph book letter
看 watch: lgph show
看 look at: dp pic
写 write: lph letter 小说
收到 receive: l letter 礼物
寄 send: l letter
买 buy: l goods fruit plant
买 buy: l goods cloth worn car
卖 sell: l car bike gadget furniture
借 borrow: lg book bike gadget 雨伞
找 look for: dp small book worn gadget pet
找到 find: d small gadget worn pet
丢 lose: l small gadget worn
洗 wash: dp cloth ware car fruit
修 repair: lp bike car gadget 电视 冰箱
用 use: gp gadget 词典
画 draw: lgp animal plant
看见 see: d animal man plant car
骑 ride: gp bike 马
开 drive: gp car
做 make: dgp dish
帮助 help: lg man mate
遇到 meet: d job mate boy girl
等 wait for: dp mate job
听 listen to: dgph song
唱 sing: dgp song
喂 feed: dp pet
拍 take: lp 照片
"""

# Things people do, and where: "-" parts the Chinese verb from its object (踢过足球).
ACTS = """
跑步 run: 公园 体育馆 学校
游泳 swim: 游泳池 海边
跳舞 dance: 公园 酒店 体育馆
唱歌 sing: 公园 花园 教室
学习 study: 学校 图书馆 教室 咖啡馆
工作 work: 医院 银行 工厂 办公室 超市 饭馆 机场 邮局 农场 博物馆
休息 rest: 公园 酒店 咖啡馆 海边 花园
睡觉 sleep: 酒店 火车站
做饭 cook: 厨房 饭馆
散步 take a walk: 公园 海边 花园 动物园
聊天 chat: 咖啡馆 公园 办公室 教室 饭馆
吃饭 eat: 饭馆 酒店 学校 办公室
踢-足球 play soccer: 公园 学校
打-篮球 play basketball: 体育馆 公园 学校
打-网球 play tennis: 体育馆 公园 学校
打-乒乓球 play table tennis: 体育馆 学校
下-棋 play chess: 公园 咖啡馆 花园
弹-钢琴 play the piano: 教室 酒店
弹-吉他 play the guitar: 公园 花园 海边
听音乐 listen to music: 咖啡馆 公园 花园
看电视 watch television: 酒店 办公室
上网 surf the internet: 图书馆 咖啡馆 办公室
画画 paint: 公园 花园 教室 海边
拍照 take photos: 公园 海边 动物园 花园 博物馆
写作业 do homework: 图书馆 教室 咖啡馆
买东西 shop: 超市 商店 市场 书店
等车 wait for the bus: 学校 医院
开会 have a meeting: 办公室 酒店 学校
打电话 make a phone call: 办公室 邮局 机场
锻炼 exercise: 公园 体育馆
骑自行车 ride a bicycle: 公园 海边
"""
# Daily routine, with the hours it may happen at.
ROUTINES = """
起床 get up: 5 6 7 8
吃早饭 eat breakfast: 6 7 8 9
上班 go to work: 7 8 9
上学 go to school: 7 8
吃午饭 eat lunch: 11 12
下班 get off work: 5 6 7
回家 go home: 4 5 6 7 8
吃晚饭 eat dinner: 5 6 7 8
洗澡 take a shower: 7 8 9 10
上床 go to bed: 9 10 11
"""

PLACES = """
学校 school at; 公园 the park in; 图书馆 the library in; 医院 the hospital in; 饭馆 the restaurant in
商店 the store in; 超市 the supermarket in; 火车站 the train station at; 机场 the airport at
银行 the bank in; 邮局 the post office in; 电影院 the cinema in; 办公室 the office in; 教室 the classroom in
厨房 the kitchen in; 花园 the garden in; 市场 the market at; 博物馆 the museum in; 动物园 the zoo in
海边 the beach at; 体育馆 the gym in; 酒店 the hotel in; 书店 the bookstore in; 咖啡馆 the cafe in
工厂 the factory in; 农场 the farm on; 游泳池 the swimming pool in
"""
CITIES = """
北京 Beijing; 上海 Shanghai; 广州 Guangzhou; 巴黎 Paris; 伦敦 London; 纽约 New York; 东京 Tokyo; 罗马 Rome
柏林 Berlin
"""
COUNTRIES = """
中国 China Chinese; 美国 America American; 英国 England English; 法国 France French; 德国 Germany German
日本 Japan Japanese; 意大利 Italy Italian; 加拿大 Canada Canadian; 俄罗斯 Russia Russian
"""
LANGUAGES = "中文 Chinese; 英语 English; 法语 French; 德语 German; 日语 Japanese; 西班牙语 Spanish; 俄语 Russian"
RIDES = "火车 train; 飞机 plane; 公共汽车 bus; 出租车 taxi; 地铁 subway; 船 boat"

PRONOUNS = """
我 I me my am; 你 you you your are; 他 he him his is; 她 she her her is; 我们 we us our are
他们 they them their are
"""
MEN = "小明 Xiaoming; 李华 Li Hua; 张伟 Zhang Wei; 汤姆 Tom; 杰克 Jack; 约翰 John; 大卫 David; 彼得 Peter"
WOMEN = "小红 Xiaohong; 王芳 Wang Fang; 刘丽 Liu Li; 玛丽 Mary; 安娜 Anna; 露西 Lucy; 丽莎 Lisa; 苏珊 Susan"

WEEKDAYS = "一 Monday; 二 Tuesday; 三 Wednesday; 四 Thursday; 五 Friday; 六 Saturday; 天 Sunday"
LATELY = """
昨天 yesterday; 前天 the day before yesterday; 昨天晚上 last night; 今天早上 this morning
昨天早上 yesterday morning; 昨天下午 yesterday afternoon
"""
LONG_AGO = "上周 last week; 上个月 last month; 去年 last year; 上个周末 last weekend"
SOON = """
明天 tomorrow; 后天 the day after tomorrow; 今天晚上 tonight; 明天早上 tomorrow morning
明天下午 tomorrow afternoon; 明天晚上 tomorrow evening; 这个周末 this weekend; 下周 next week
"""
HABITS = """
每天 every day; 每天早上 every morning; 每天下午 every afternoon; 每天晚上 every evening
每个周末 every weekend
"""
FREQUENCIES = "常常 often; 总是 always; 有时候 sometimes; 通常 usually; 很少 rarely; 从来不 never"
WEATHER = "下雨 rain; 下雪 snow"

# How Chinese marks a verb (before it; after it) and English inflects it: name, both marks, tense, adverb.
ASPECTS = """
does - - present; did - 了 past; did-not 没 - past not; will 要 - will; will-not 不会 - will not; now 正在 - now
still 还在 - now still; has - 过 perfect; has-not 没 过 perfect not; never 从来没 过 perfect never
should 应该 - should; should-not 不应该 - should not; must 必须 - must; can 能 - can; cannot 不能 - can not
could 可以 - can; knows 会 - can; knows-not 不会 - can not; would 就会 - will; would-not 就不 - will not
ought 就应该 - should; wants 想 - want; wants-not 不想 - want not
"""

# Where things may be: the kinds of thing found there.
SPOTS = """
桌子上 on the table: food meal drink ware book letter small gadget pic
桌子下面 under the table: pet bag 球
椅子上 on the chair: cloth book bag 猫
椅子下面 under the chair: 猫 狗 兔子 bag 球
床上 on the bed: cloth book gadget 猫 狗
床下面 under the bed: bag 球 猫 狗 老鼠
沙发上 on the sofa: cloth book gadget 猫 狗
沙发后面 behind the sofa: 猫 狗 兔子 球
箱子里 in the suitcase: cloth worn book gadget
包里 in the bag: book letter small gadget fruit
盒子里 in the box: small dish worn
抽屉里 in the drawer: small letter worn pic
书架上 on the bookshelf: book
冰箱里 in the refrigerator: food drink meal
门后面 behind the door: 猫 狗 folk 雨伞
"""
OUTDOORS = """
窗户旁边 next to the window: seat furniture plant
树下面 under the tree: pet folk boy girl bike seat
学校后面 behind the school: car bike plant pet
医院前面 in front of the hospital: car bike folk plant
商店旁边 next to the store: car bike folk boy girl
教室里 in the classroom: man seat furniture
花园里 in the garden: pet boy girl plant
动物园里 in the zoo: wild
公园里 in the park: man pet bike plant
农场里 on the farm: pet
"""

# 把: what became of a thing: Chinese result, English verb: kinds.
RESULTS = """
吃了 eat: food meal
喝了 drink: drink
卖了 sell: car bike gadget furniture seat
洗了 wash: cloth ware fruit car
修好了 repair: bike car gadget 电视 冰箱
打开了 open: door bag
关上了 close: door
弄丢了 lose: small gadget worn
打破了 break: ware 窗户
带来了 bring: small book gadget food
拿走了 take away: small book bag gadget letter
看完了 finish reading: book letter
"""

# Irregular past and participle; the other forms follow from the spelling.
IRREGULAR = """
be was been; eat ate eaten; drink drank drunk; read read read; write wrote written; send sent sent
buy bought bought; sell sold sold; find found found; lose lost lost; draw drew drawn; see saw seen
ride rode ridden; drive drove driven; make made made; meet met met; sing sang sung; feed fed fed
take took taken; run ran run; swim swam swum; sleep slept slept; do did done; have had had; get got got
go went gone; give gave given; put put put; leave left left; lend lent lent; bring brought brought
break broke broken; sit sat sat; stand stood stood; lie lay lain; hold held held; wear wore worn
teach taught taught; know knew known; speak spoke spoken; come came come
"""
DIGITS = "零一二三四五六七八九"
ENGLISH_NUMBERS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen"
).split()
ENGLISH_TENS = "- ten twenty thirty forty fifty sixty seventy eighty ninety".split()
DOUBLED = set("run swim chat shop get sit put".split())


# ------------------------------------------------------------------------------------- phrases of two sides


