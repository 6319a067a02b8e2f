"""The words of the demo corpus, in tables: plain text to read and to extend, which `words` turns into values.

Entries end with their line or at a ";". An entry "head: words" says something of its head (of nouns and
adjectives, one head stands for its whole line), and wherever words name nouns, they name kinds of noun, GROUPS
of kinds, or single nouns by their Chinese.
"""

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
furniture: 桌子 张 table; 灯 盏 lamp; 电视 台 television; 冰箱 台 refrigerator
furniture: 钢琴 架 piano; 书架 个 bookshelf=bookshelves
plant: 花 朵 flower; 树 棵 tree
door: 门 扇 door; 窗户 扇 window
"""

# Names a set of kinds once, wherever a table or a construction says which nouns make sense.
GROUPS = {
    "animal": "pet wild",
    "sibling": "brother sister",
    "man": "job boy girl folk",
    "person": "job mate boy girl folk brother sister father mother name",
    "food": "fruit dish",
    "goods": "book cloth worn bike small ware bag gadget seat furniture",
}

# Adjectives by the kinds they describe: Chinese ("-": not before a noun), English, [comparative].
ADJECTIVES = """
person: 聪明 smart smarter; 年轻 young younger; 善良 kind kinder; 勇敢 brave braver
person: 友好 friendly friendlier; 认真 serious; 瘦- thin thinner; 懒- lazy lazier
person plant: 高- tall taller
job brother boy name: 强壮- strong stronger
animal fruit bag seat city: 大 big bigger
animal fruit bag seat ware city: 小 small smaller
goods car: 新 new newer; 旧 old older
goods fruit car: 便宜 cheap cheaper; 贵- expensive
pet cloth worn car ware bag girl sister plant pic city: 漂亮 beautiful
pet: 可爱 cute cuter
wild: 危险 dangerous
food meal: 好吃 delicious
fruit: 新鲜 fresh fresher
meal drink city: 热- hot hotter
drink city: 冷- cold colder
book show letter: 有趣 interesting
book show: 无聊 boring
book gadget: 有用 useful
book letter: 重要 important
show song city job: 有名 famous
language: 难- difficult; 容易- easy easier
letter show song: 长- long longer
cloth seat: 舒服 comfortable
cloth ware car bag city: 干净 clean cleaner
cloth ware car bag bike: 脏- dirty dirtier
pet city: 安静 quiet quieter
bag seat furniture: 重- heavy heavier
car bike: 快- fast faster
"""
# States pass, so only these take 昨天.
STATES = """
person: 忙- busy busier; 累- tired; 高兴- happy happier; 难过- sad sadder; 生气- angry angrier
person: 饿- hungry hungrier; 渴- thirsty thirstier; 紧张- nervous; 兴奋- excited
"""
COLORS = """
cloth worn bike car small seat ware bag: 红色 red; 蓝色 blue; 绿色 green; 黄色 yellow
pet cloth worn car seat ware bag: 白色 white; 黑色 black
"""
# 有点 and 太...了 complain; with these they sound natural.
UNWELCOME = "贵 旧 重 热 冷 无聊 难 长 脏 瘦 懒 忙 累 难过 生气 饿 渴 紧张 危险"

# Deeds done to a thing: Chinese, English: uses, kinds of object. The uses are d (a matter of a day), l (of
# any time), g (takes 过), x (takes it before a bare noun), p (takes 在), h (a habit), w (what one may plan).
DEEDS = """
吃 eat: dxphw food meal meal; 喝 drink: dxphw drink; 看 read: lgphw book letter; 看 watch: lgphw show
看 look at: dpw pic; 写 write: lphw letter 小说; 收到 receive: l letter 礼物; 寄 send: lw letter
买 buy: lw goods fruit plant; 买 buy: lw goods cloth worn car; 卖 sell: lw car bike gadget furniture
借 borrow: lgw book bike gadget 雨伞; 找 look for: dpw small book worn gadget pet
找到 find: d small gadget worn pet; 丢 lose: l small gadget worn; 洗 wash: dpw cloth ware car fruit
修 repair: lpw bike car gadget 电视 冰箱; 用 use: gpw gadget 词典; 画 draw: lgpw animal wild plant
看见 see: d animal wild man plant car; 骑 ride: gpw bike 马; 开 drive: gpw car; 做 make: dxpw dish
帮助 help: lgw man mate; 遇到 meet: d job mate boy girl; 等 wait for: dpw mate job; 听 listen to: dxphw song
唱 sing: dgpw song; 喂 feed: dpw pet; 拍 take: lpw 照片
"""

# Things people do, and where: "-" parts the Chinese verb from its object (踢过足球).
ACTS = """
跑步 run: 公园 体育馆 学校; 游泳 swim: 游泳池 海边; 跳舞 dance: 公园 酒店 体育馆; 唱歌 sing: 公园 花园 教室
学习 study: 学校 图书馆 教室 咖啡馆; 工作 work: 医院 银行 工厂 办公室 超市 饭馆 机场 邮局 农场 博物馆
休息 rest: 公园 酒店 咖啡馆 海边 花园; 睡觉 sleep: 酒店 火车站; 做饭 cook: 厨房 饭馆
散步 take a walk: 公园 海边 花园 动物园; 聊天 chat: 咖啡馆 公园 办公室 教室 饭馆
吃饭 eat: 饭馆 酒店 学校 办公室; 踢-足球 play soccer: 公园 学校; 打-篮球 play basketball: 体育馆 公园 学校
打-网球 play tennis: 体育馆 公园 学校; 打-乒乓球 play table tennis: 体育馆 学校
下-棋 play chess: 公园 咖啡馆 花园; 弹-钢琴 play the piano: 教室 酒店; 弹-吉他 play the guitar: 公园 花园 海边
听音乐 listen to music: 咖啡馆 公园 花园; 看电视 watch television: 酒店 办公室
上网 surf the internet: 图书馆 咖啡馆 办公室; 画画 paint: 公园 花园 教室 海边
拍照 take photos: 公园 海边 动物园 花园 博物馆; 写作业 do homework: 图书馆 教室 咖啡馆
买东西 shop: 超市 商店 市场 书店; 开会 have a meeting: 办公室 酒店 学校
打电话 make a phone call: 办公室 邮局 机场; 骑自行车 ride a bicycle: 公园 海边
"""
# Daily routine, with the hours it may happen at.
ROUTINES = """
起床 get up: 五 六 七 八; 吃早饭 eat breakfast: 六 七 八 九; 上班 go to work: 七 八 九; 上学 go to school: 七 八
吃午饭 eat lunch: 十二 十一 十二; 下班 get off work: 五 六 七; 回家 go home: 四 五 六 七 八
吃晚饭 eat dinner: 五 六 七 八; 洗澡 take a shower: 七 八 九 十; 上床 go to bed: 九 十 十一
"""

PLACES = """
学校 school at; 公园 the park in; 图书馆 the library in; 医院 the hospital in; 饭馆 the restaurant in
商店 the store in; 超市 the supermarket in; 火车站 the train station at; 机场 the airport at; 银行 the bank in
邮局 the post office in; 电影院 the cinema in; 办公室 the office in; 教室 the classroom in; 厨房 the kitchen in
花园 the garden in; 市场 the market at; 博物馆 the museum in; 动物园 the zoo in; 海边 the beach at
体育馆 the gym in; 酒店 the hotel in; 书店 the bookstore in; 咖啡馆 the cafe in; 工厂 the factory in
农场 the farm on; 游泳池 the swimming pool in
"""
CITIES = """
北京 Beijing; 上海 Shanghai; 广州 Guangzhou; 巴黎 Paris; 伦敦 London; 纽约 New York; 东京 Tokyo; 罗马 Rome
柏林 Berlin
"""
COUNTRIES = """
中国 China Chinese; 美国 America American; 英国 England English; 法国 France French; 德国 Germany German
日本 Japan Japanese; 意大利 Italy Italian; 加拿大 Canada Canadian; 俄罗斯 Russia Russian
"""
LANGUAGES = "中文 Chinese; 英语 English; 法语 French; 德语 German; 日语 Japanese; 俄语 Russian"
# Three that go from town to town, and three that go about town.
RIDES = "火车 train; 飞机 plane; 船 boat; 公共汽车 bus; 出租车 taxi; 地铁 subway"

PRONOUNS = """
我 I me my am; 你 you you your are; 他 he him his is; 她 she her her is; 我们 we us our are
他们 they them their are
"""
MEN = "小明 Xiaoming; 李华 Li Hua; 张伟 Zhang Wei; 汤姆 Tom; 杰克 Jack; 约翰 John; 大卫 David; 彼得 Peter"
WOMEN = "小红 Xiaohong; 王芳 Wang Fang; 刘丽 Liu Li; 玛丽 Mary; 安娜 Anna; 露西 Lucy; 丽莎 Lisa; 苏珊 Susan"

NUMBERS = """
两 two; 三 three; 四 four; 五 five; 六 six; 七 seven; 八 eight; 九 nine; 十 ten; 十一 eleven; 十二 twelve
"""
TENS = "二十 twenty; 三十 thirty; 四十 forty; 五十 fifty; 六十 sixty; 七十 seventy; 八十 eighty"
WEEKDAYS = "一 Monday; 二 Tuesday; 三 Wednesday; 四 Thursday; 五 Friday; 六 Saturday; 日 Sunday"
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
每天 every day; 每天早上 every morning; 每天下午 every afternoon; 每天晚上 every evening; 每个周末 every weekend
"""
FREQUENCIES = "常常 often; 总是 always; 有时候 sometimes; 通常 usually; 很少 rarely; 从来不 never"
WEATHER = "下雨 rain; 下雪 snow"

# How Chinese marks a verb (before it; after it) and English inflects it: name, both marks, tense, adverb.
ASPECTS = """
does - - present; did - 了 past; did-not 没 - past not; will 要 - will; will-not 不会 - will not
now 正在 - now; still 还在 - now still; has - 过 perfect; has-not 没 过 perfect not
has-never 从来没 过 perfect never
should 应该 - should; should-not 不应该 - should not; must 必须 - must; can 能 - can; cannot 不能 - can not
could 可以 - can; knows 会 - can; knows-not 不会 - can not; would 就会 - will; would-not 就不 - will not
ought 就应该 - should; wants 想 - want; wants-not 不想 - want not
"""

# Where things may be: the kinds of thing found there.
SPOTS = """
桌子上 on the table: food meal drink ware book letter small gadget pic; 桌子下面 under the table: pet bag 球
椅子上 on the chair: cloth book bag 猫; 椅子下面 under the chair: 猫 狗 兔子 bag 球
床上 on the bed: cloth book gadget 猫 狗; 床下面 under the bed: bag 球 猫 狗 老鼠
沙发上 on the sofa: cloth book gadget 猫 狗; 沙发后面 behind the sofa: 猫 狗 兔子 球
箱子里 in the suitcase: cloth worn book gadget; 包里 in the bag: book letter small gadget fruit
盒子里 in the box: small dish worn; 抽屉里 in the drawer: small letter worn pic; 书架上 on the bookshelf: book
冰箱里 in the refrigerator: food drink meal; 门后面 behind the door: 猫 狗 folk 雨伞
"""
OUTDOORS = """
窗户旁边 next to the window: seat furniture plant; 树下面 under the tree: pet folk boy girl bike seat
学校后面 behind the school: car bike plant pet; 医院前面 in front of the hospital: car bike folk plant
商店旁边 next to the store: car bike folk boy girl; 教室里 in the classroom: man seat furniture
花园里 in the garden: pet boy girl plant; 动物园里 in the zoo: wild; 公园里 in the park: man pet bike plant
农场里 on the farm: pet
"""

# 把: what became of a thing: Chinese result, English verb: kinds.
RESULTS = """
吃了 eat: food meal; 喝了 drink: drink; 卖了 sell: car bike gadget furniture seat
洗了 wash: cloth ware fruit car; 修好了 repair: bike car gadget 电视 冰箱; 打开了 open: door bag
关上了 close: door; 弄丢了 lose: small gadget worn; 打破了 break: ware 窗户
带来了 bring: small book gadget food worn; 拿走了 take away: small book bag gadget letter
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
DOUBLED = "run swim chat shop get sit put"
